"""Proofs of all entities that answer a question: those that a rule concludes are searched, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.experiments.evaluate import load_trained
from edgewise.experiments.load import load_config
from edgewise.runs.folder import RunFolder
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.beam_search import Steps
from edgewise.systems.reasoning.evaluation.proof_scores import (
    atoms_at_once,
    plausibility,
    policy_steps,
    prove_atoms,
)
from edgewise.systems.reasoning.evaluation.rank import embedding_of, make_ranking_env
from edgewise.systems.reasoning.evaluation.rule_ranking import RuleScorer
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.mining.relations import Ints
from edgewise.systems.reasoning.mining.rule_book import RuleBook
from edgewise.systems.reasoning.models.proof_policy import ProofActor


class EntityProofs:
    """Log-probabilities that a policy proves each entity as the answer of a question.

    An entity that no rule concludes from the facts has no proof by one rule, so it is not searched and counts
    as unproved, although several rules together might prove it.

    Args:
        env: knowledge graph and rules of the policy.
        steps: probabilities of its steps.
        book: its rules, compiled for prediction.
        beam: goals kept per entity.
        ties: random seed to choose among steps of equal probability; the first ones if not given.

    Attributes:
        searched: number of searches so far.
        expanded: number of goals that they expanded.
    """

    def __init__(
        self, env: ReasoningEnv, steps: Steps, book: RuleBook, *, beam: int, ties: int | None = None
    ) -> None:
        self.env, self.steps, self.book, self.beam, self.ties = env, steps, book, beam, ties
        self.searched, self.expanded = 0, 0

    def __call__(self, relation: int, given: Ints) -> Tensor:
        """Score all entities for questions relation(x, ?), `[m, E]` float64; minus infinity without a proof.

        Args:
            relation: p for tails of predicate p + 1, P + p for its heads.
            given: `[m]` the x, from 0.
        """
        words = self.env.dataset.vocabulary
        score = torch.full((len(given) * words.num_entities,), -torch.inf, dtype=torch.float64)
        place = np.flatnonzero(np.diff(self.book.concluded(relation, given).indptr))
        question, entity = np.divmod(place, words.num_entities)
        pair = np.stack((given[question], entity), -1) + 1
        if relation >= words.num_predicates:
            pair = pair[:, ::-1]
        predicate = np.full((len(place), 1), relation % words.num_predicates + 1)
        atoms = torch.from_numpy(np.concatenate((predicate, pair), 1)).to(self.env.device)
        draw = None if self.ties is None else torch.Generator().manual_seed(self.ties)
        start = 0
        for part in atoms.split(atoms_at_once(self.beam)):
            found = prove_atoms(
                self.env, self.steps, part, beam=self.beam, depth=self.env.config.max_steps, ties=draw
            )
            score[place[start : start + len(part)]] = found.log_probability.cpu()
            start += len(part)
            self.searched += len(part)
            self.expanded += int(found.expanded.sum())
        return score.view(len(given), -1)


def entity_proofs_of_run(
    run: Path, *, dataset: Dataset, beam: int, kge: str | None = None, seed: int = 0
) -> dict[str, EntityProofs]:
    """Return the proofs of the policy of a run as `rl`, and those of a uniform one as `chance`.

    Args:
        run: a run folder.
        dataset: the questions; its facts must be those of the run, which may otherwise know the answers.
        beam: goals kept per entity.
        kge: folder of embeddings, for a run that assumes atoms.
        seed: random seed of the ties of the uniform policy.

    Raises:
        ConfigError: the run is of another environment, or on other facts.
    """
    config = load_config(RunFolder(run).config_file)
    if config.env_name != "reasoning":
        raise ConfigError(f"{run} is a run of {config.env_name}, which proves nothing")
    trained = load_trained(run, settings={"withheld": 0.0})
    env = make_ranking_env(trained.config)
    same_names = env.dataset.vocabulary.digest == dataset.vocabulary.digest
    if not (same_names and torch.equal(env.dataset.facts, dataset.facts)):
        raise ConfigError(
            f"{run} is a run on {env.config.data}, whose facts are not those of {dataset.name}",
            hint="train a policy on the same folder with --env.data",
        )
    embedding = embedding_of(env, kge, needed=env.config.assume)
    sure = None if embedding is None else plausibility(embedding)
    book = RuleScorer(env.dataset).book
    policy = policy_steps(env, cast(ProofActor, trained.policy), plausibility=sure)
    uniform = policy_steps(env, None, plausibility=sure)
    return {
        "rl": EntityProofs(env, policy, book, beam=beam),
        "chance": EntityProofs(env, uniform, book, beam=beam, ties=seed),
    }
