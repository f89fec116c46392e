"""Builds the policy over proof steps for an environment, with embeddings where the config asks for them."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.experiments.recipe import AnyRun
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.store import load_kge
from edgewise.systems.reasoning.engine.support import usable_matches
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.proof_scores import decision
from edgewise.systems.reasoning.knowledge.vocabulary import SPECIALS
from edgewise.systems.reasoning.models.config import ProofConfig
from edgewise.systems.reasoning.models.proof_encoder import Symbols
from edgewise.systems.reasoning.models.proof_policy import (
    Decision,
    Expand,
    Plausibility,
    ProofActorCritic,
    initialise_entities,
    make_proof_actor_critic,
)
from edgewise.systems.reasoning.potential import Potential

GOAL = "goal"


def build_prover(env: ReasoningEnv, config: AnyRun) -> ProofActorCritic:
    """Build the policy and the critic of a run's config, and shape the rewards of `env` if it asks for it.

    Raises:
        ConfigError: embeddings are needed and none are named.
    """
    with torch.random.fork_rng(devices=[]):
        embedding = load_embedding(config.model, env)
    model = make_prover(env, config.model, embedding=embedding)
    if embedding is not None and config.model.shaping > 0:
        env.set_potential(Potential(plausibility(embedding), config.model.shaping, config.algorithm.gamma))
    return model


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
        expand_in=expansion,
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
