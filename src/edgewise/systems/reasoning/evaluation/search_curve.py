"""MRR against the number of expanded goals: a policy, a uniform one, and the order of the rules' weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from edgewise.evaluation.statistics import Interval, paired_difference
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.beam_search import Steps
from edgewise.systems.reasoning.evaluation.candidate_ranks import mean_reciprocal_rank, ranks
from edgewise.systems.reasoning.evaluation.candidates import Candidates
from edgewise.systems.reasoning.evaluation.proof_scores import Plausibility, beam_search_proofs, policy_steps
from edgewise.systems.reasoning.models.proof_policy import ProofActor

UNPROVED = -1e9
"""Score of candidates without a proof, below all others."""


@dataclass(frozen=True)
class CurvePoint:
    """One beam width.

    Attributes:
        beam: goals kept per candidate.
        mrr: by method.
        goals: expanded goals per candidate, by method.
        gains: MRR of the policy minus that of each other method, with its paired bootstrap interval.
    """

    beam: int
    mrr: dict[str, float]
    goals: dict[str, float]
    gains: dict[str, Interval]


def has_weights(env: ReasoningEnv) -> bool:
    """Return whether the rules have different weights, so that their order means something."""
    return len({rule.weight for rule in env.dataset.rules}) > 1


def search_curve(
    env: ReasoningEnv,
    actor: ProofActor,
    lists: Candidates,
    beams: Sequence[int],
    *,
    depth: int,
    plausibility: Plausibility | None = None,
) -> list[CurvePoint]:
    """Search for proofs with several beam widths by all methods, on the same lists."""
    methods: dict[str, Steps] = {
        "rl": policy_steps(env, actor, plausibility=plausibility),
        "chance": policy_steps(env, None, plausibility=plausibility),
    }
    if has_weights(env):
        methods["confidence"] = policy_steps(env, None, plausibility=plausibility, by_weight=True)
    candidates = max(1, int(lists.exists.sum()))
    points = []
    for beam in beams:
        rank, goals = dict[str, torch.Tensor](), dict[str, float]()
        for name, steps in methods.items():
            ties = 0 if name == "chance" else None
            table = beam_search_proofs(env, steps, lists, beam=beam, depth=depth, ties=ties)
            rank[name] = ranks(table.log_probability.clamp(min=UNPROVED), lists.exists)
            goals[name] = table.expanded / candidates
        points.append(
            CurvePoint(
                beam,
                {name: mean_reciprocal_rank(one) for name, one in rank.items()},
                goals,
                {name: _gain(rank["rl"], one) for name, one in rank.items() if name != "rl"},
            )
        )
    return points


def _gain(one: torch.Tensor, other: torch.Tensor) -> Interval:
    return paired_difference(one.reciprocal().numpy(), other.reciprocal().numpy())
