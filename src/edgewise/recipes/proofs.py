"""Puts runs of proofs together: the policy gets the environment's successors, which it may not import."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import cast

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.algorithms.registry import algorithm_class
from edgewise.config.errors import ConfigError
from edgewise.data.rollout import Rollout
from edgewise.envs.reasoning.env import ReasoningEnv
from edgewise.envs.reasoning.potential import Potential
from edgewise.envs.reasoning.render import replay
from edgewise.envs.reasoning.support import usable_matches
from edgewise.evaluation.evaluate import Policy
from edgewise.evaluation.proof_scores import decision
from edgewise.evaluation.result import Evaluation
from edgewise.graphs.knowledge.vocabulary import SPECIALS
from edgewise.models.config import ProofConfig
from edgewise.models.kge import KnowledgeEmbedding
from edgewise.models.kge_store import load_kge
from edgewise.models.proof_encoder import Symbols
from edgewise.models.proof_policy import (
    Decision,
    Expand,
    Plausibility,
    ProofActor,
    ProofActorCritic,
    initialise_entities,
    make_proof_actor_critic,
)
from edgewise.recipes.compose import Instances, check_device, make_worlds, stream
from edgewise.recipes.recipe import AnyRun
from edgewise.recipes.registry import recipe
from edgewise.training.parts import Parts

GOAL = "goal"


def build(config: AnyRun) -> Parts:
    """The parts of a run that proves queries.

    Raises:
        ConfigError: the device is absent, a stage changes what cannot change, or embeddings are wanted and
            none are named.
    """
    check_device(config.device)
    made_from = recipe(config.recipe)
    env = cast(ReasoningEnv, make_worlds(config))
    embedding = load_embedding(config.model, env)
    torch.manual_seed(stream(config.seed, "model"))
    model = make_prover(env, config.model, embedding=embedding)
    if embedding is not None and config.model.shaping > 0:
        env.set_potential(Potential(plausibility(embedding), config.model.shaping, config.algorithm.gamma))
    algorithm = algorithm_class(made_from.algorithm)(
        model,
        config.algorithm,
        seed=stream(config.seed, "algorithm"),
        device=config.device,
        compile=config.training.compile,
    )
    instances = ProofInstances.of(config)
    return Parts(
        env=env,
        algorithm=algorithm,
        rollout=Rollout(env, algorithm.policy, steps=config.training.steps),
        evaluate=instances,
        baselines=instances.baselines(config.evaluation.baselines),
        replay=partial(replay, vocabulary=env.dataset.vocabulary),
    )


class ProofInstances(Instances):
    """Fixed queries; a policy that is measured on them sees the facts within reach there."""

    def __call__(self, policy: Policy, *, record: int = 0) -> Evaluation:
        """Every proof's measures, and the states of the first `record` proofs."""
        with (
            policy.on(expansion(cast(ReasoningEnv, self.env)))
            if isinstance(policy, ProofActor)
            else nullcontext()
        ):
            return super().__call__(policy, record=record)


def expansion(env: ReasoningEnv) -> Expand:
    """What a policy is asked in an environment."""

    def expand(tensordict: TensorDictBase) -> Decision:
        return decision(*observed(tensordict), env.successors(tensordict.get(GOAL)))

    return expand


def make_prover(
    env: ReasoningEnv, config: ProofConfig, *, embedding: KnowledgeEmbedding | None = None
) -> ProofActorCritic:
    """The policy and the critic for an environment's knowledge base."""
    program = env.successors.program
    words = program.vocabulary
    symbols = Symbols(
        predicates=words.num_predicate_ids,
        entities=words.num_entities,
        variables=program.max_variables,
        rules=len(env.dataset.rules),
    )
    model = make_proof_actor_critic(
        symbols,
        config,
        expand=expansion(env),
        observed=observed,
        in_keys=[GOAL],
        counts=lambda atoms, query: usable_matches(program, atoms, excluded=query),
        plausibility=None if embedding is None else plausibility(embedding),
    )
    if embedding is not None and config.initialise:
        initialise_entities(model, embedding.entity_vectors())
    return model


def observed(tensordict: TensorDictBase) -> tuple[Tensor, Tensor]:
    """States `[N, A, 3]` and queries `[N, 3]` of observations `[*B]`."""
    goal = tensordict.get(GOAL)
    return goal.get("atoms").flatten(0, -3), goal.get("query").flatten(0, -2)


def load_embedding(config: ProofConfig, env: ReasoningEnv) -> KnowledgeEmbedding | None:
    """The embedding model that a config names, if it needs one.

    Raises:
        ConfigError: it needs one and names none.
    """
    if config.kge is not None:
        return load_kge(config.kge, vocabulary=env.dataset.vocabulary, device=env.device)
    wanted = {
        "fusion": config.fusion > 0,
        "keep_best": config.keep_best is not None,
        "shaping": config.shaping > 0,
        "initialise": config.initialise,
    }
    asked = [f"model.{name}" for name, is_on in wanted.items() if is_on]
    if asked:
        raise ConfigError(
            f"{', '.join(asked)} need embeddings, and model.kge names none",
            hint="train them with `edgewise kge FOLDER`, then give that folder as --model.kge",
        )
    return None


def plausibility(embedding: KnowledgeEmbedding) -> Plausibility:
    """Log-probabilities of ground atoms, assumed ones as what they assume."""
    offset = embedding.num_predicates + len(SPECIALS)

    @torch.no_grad()
    def log_probability(atoms: Tensor) -> Tensor:
        predicate, head, tail = atoms.long().unbind(-1)
        predicate = torch.where(predicate > offset, predicate - offset, predicate)
        return embedding.log_probability(torch.stack((predicate, head, tail), -1))

    return log_probability
