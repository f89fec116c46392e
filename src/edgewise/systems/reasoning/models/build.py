"""Build the policy and critic for an environment."""

from __future__ import annotations

from functools import partial

from edgewise.config.run import AnyRun
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.models.config import ProofConfig
from edgewise.systems.reasoning.models.decision import GOAL, make_expand, make_read_goals, rule_evidence
from edgewise.systems.reasoning.models.proof_encoder import Symbols
from edgewise.systems.reasoning.models.proof_policy import ProofActorCritic, make_proof_actor_critic


def build_prover(env: ReasoningEnv, config: AnyRun) -> ProofActorCritic:
    """Build the policy and the critic of a run."""
    return make_prover(env, config.model)


def make_prover(env: ReasoningEnv, config: ProofConfig) -> ProofActorCritic:
    """Build the policy and the critic for the knowledge base of an environment."""
    program = env.successors.program
    words = program.vocabulary
    symbols = Symbols(
        predicates=words.num_predicate_ids,
        entities=words.num_entities,
        variables=program.max_variables,
        rules=len(env.dataset.rules),
    )
    return make_proof_actor_critic(
        symbols,
        config,
        expand=make_expand(env, matches=config.reads_matches),
        make_expand=partial(make_expand, matches=config.reads_matches),
        read_goals=make_read_goals(env, matches=config.reads_matches),
        in_keys=[GOAL],
        evidence=rule_evidence(env.dataset.rules).to(env.device),
    )
