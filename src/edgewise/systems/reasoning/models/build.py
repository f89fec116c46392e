"""Build the policy and critic for an environment, with embeddings if the config names them."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.store import load_kge
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.knowledge.vocabulary import SPECIALS
from edgewise.systems.reasoning.models.config import ProofConfig
from edgewise.systems.reasoning.models.decision import GOAL, make_expand, make_read_goals, rule_evidence
from edgewise.systems.reasoning.models.proof_encoder import Symbols
from edgewise.systems.reasoning.models.proof_policy import (
    Plausibility,
    ProofActorCritic,
    initialise_entities,
    make_proof_actor_critic,
)
from edgewise.systems.reasoning.potential import Potential


def build_prover(env: ReasoningEnv, config: AnyRun) -> ProofActorCritic:
    """Build the policy and the critic of a run, and set the reward shaping of `env` if the config has any.

    Raises:
        ConfigError: embeddings are needed and none are named.
    """
    with torch.random.fork_rng(devices=[]):
        embedding = load_embedding(config.model, env)
    model = make_prover(env, config.model, embedding=embedding)
    if embedding is not None and config.model.shaping > 0:
        env.set_potential(Potential(plausibility(embedding), config.model.shaping, config.algorithm.gamma))
    return model


def make_prover(
    env: ReasoningEnv, config: ProofConfig, *, embedding: KnowledgeEmbedding | None = None
) -> ProofActorCritic:
    """Build the policy and the critic for the knowledge base of an environment."""
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
        expand=make_expand(env, matches=config.reads_matches),
        make_expand=partial(make_expand, matches=config.reads_matches),
        read_goals=make_read_goals(env, matches=config.reads_matches),
        in_keys=[GOAL],
        plausibility=None if embedding is None else plausibility(embedding),
        evidence=rule_evidence(env.dataset.rules).to(env.device),
    )
    if embedding is not None and config.initialise:
        initialise_entities(model, embedding.entity_vectors())
    return model


def load_embedding(config: ProofConfig, env: ReasoningEnv) -> KnowledgeEmbedding | None:
    """Load the embedding model that a config names; return None if it names none.

    Raises:
        ConfigError: the config names none, but a setting needs one.
    """
    if config.kge is not None:
        return load_kge(config.kge, vocabulary=env.dataset.vocabulary, device=env.device)
    enabled = {
        "fusion": config.fusion > 0,
        "keep_best": config.keep_best is not None,
        "shaping": config.shaping > 0,
        "initialise": config.initialise,
    }
    needing = [f"model.{name}" for name, is_on in enabled.items() if is_on]
    if needing:
        raise ConfigError(
            f"{', '.join(needing)} need embeddings, but model.kge is not set",
            hint="train them with `edgewise reasoning kge FOLDER`, then give their folder as --model.kge",
        )
    return None


def plausibility(embedding: KnowledgeEmbedding) -> Plausibility:
    """Return a function from ground atoms to log-probabilities; `<predicate>_kge` counts as its predicate."""
    offset = embedding.num_predicates + len(SPECIALS)

    @torch.no_grad()
    def log_probability(atoms: Tensor) -> Tensor:
        predicate, head, tail = atoms.long().unbind(-1)
        predicate = torch.where(predicate > offset, predicate - offset, predicate)
        return embedding.log_probability(torch.stack((predicate, head, tail), -1))

    return log_probability
