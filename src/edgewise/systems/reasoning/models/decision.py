"""The choice a policy makes at each goal, built from observations and the resolution engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.systems.reasoning.knowledge.rules import Rule

if TYPE_CHECKING:
    from edgewise.systems.reasoning.engine.expand import Expansion
    from edgewise.systems.reasoning.env import ReasoningEnv

GOAL = "goal"
"""The entry of the root TensorDict that holds the goal."""


@dataclass(frozen=True)
class Decision:
    """States and their successors, grouped by state.

    Args:
        atoms: `[N, A, 3]`, the states.
        query: `[N, 3]`, the query of each state.
        successors: `[L, A, 3]`.
        owner: `[L]` int64, the state of each successor, non-decreasing; N for empty rows at the end.
        origin: `[L]` int64, the number of its rule from 1; 0 for a fact or an end.
        matches: `[N, A]` and `[L, A]`, the number of facts that match each atom of the states and of the
            successors; None if the policy counts them itself.
        plausibility: `[L]`, log-probability of each successor's first atom by an embedding model; None if the
            policy computes it itself.
    """

    atoms: Tensor
    query: Tensor
    successors: Tensor
    owner: Tensor
    origin: Tensor
    matches: tuple[Tensor, Tensor] | None = None
    plausibility: Tensor | None = None


Expand = Callable[[TensorDictBase], Decision]
"""Maps a batch `[*B]` of observations, flattened to N, to its decisions."""

ReadGoals = Callable[[TensorDictBase], tuple[Tensor, Tensor]]
"""Maps a batch of observations, flattened to N, to states `[N, A, 3]` and queries `[N, 3]`."""


def read_goals(tensordict: TensorDictBase) -> tuple[Tensor, Tensor]:
    """Return states `[N, A, 3]` and queries `[N, 3]` of observations `[*B]`."""
    goal = tensordict.get(GOAL)
    return goal.get("atoms").flatten(0, -3), goal.get("query").flatten(0, -2)


def make_decision(atoms: Tensor, query: Tensor, found: Expansion) -> Decision:
    """Build the decision of states `[N, A, 3]` of queries `[N, 3]` from their expansion."""
    return Decision(atoms, query, found.successors, found.owner, rule_numbers(found))


def rule_numbers(found: Expansion) -> Tensor:
    """Return the rule of each successor, `[L]` from 1; 0 for a fact or an end."""
    return (found.origin + 1).clamp(min=0)


def log_weights(rules: Sequence[Rule]) -> Tensor:
    """Return the logarithm of each rule's weight, at most 0, `[R + 1]`; 0 at place 0, for facts and ends."""
    weight = torch.tensor([1.0, *(rule.weight for rule in rules)])
    return weight.clamp(min=1e-6, max=1.0).log()


def rule_evidence(rules: Sequence[Rule]) -> Tensor:
    """Return features of rules, `[R + 1, 3]`: whether it is one, log weight, log support; 0 if unknown."""
    support = torch.tensor([0.0, *(float(rule.support or 0) for rule in rules)])
    is_rule = torch.ones(len(rules) + 1)
    is_rule[0] = 0.0
    return torch.stack((is_rule, log_weights(rules), support.log1p()), -1)


def make_expand(env: ReasoningEnv) -> Expand:
    """Return the function that maps observations of `env` to decisions."""

    def expand(tensordict: TensorDictBase) -> Decision:
        return make_decision(*read_goals(tensordict), env.successors(tensordict.get(GOAL)))

    return expand
