"""The choice a policy makes at each goal, built from observations and the resolution engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.nn import functional

from edgewise.systems.reasoning.engine.support import usable_matches
from edgewise.systems.reasoning.knowledge.placement import can_count
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
        matches: `[N, A]` and `[L, A]`, the number of facts of the environment that match each atom of the
            states and of the successors; None if the policy does not read them.
    """

    atoms: Tensor
    query: Tensor
    successors: Tensor
    owner: Tensor
    origin: Tensor
    matches: tuple[Tensor, Tensor] | None = None


Expand = Callable[[TensorDictBase], Decision]
"""Maps a batch `[*B]` of observations, flattened to N, to its decisions."""

Goals = tuple[Tensor, Tensor, Tensor | None]
"""States `[N, A, 3]`, queries `[N, 3]`, and the number of facts that match each atom, `[N, A]` or None."""

ReadGoals = Callable[[TensorDictBase], Goals]
"""Maps a batch of observations to goals, flattened to N."""


def make_decision(
    env: ReasoningEnv, atoms: Tensor, query: Tensor, found: Expansion, *, matches: bool
) -> Decision:
    """Build the decision of states `[N, A, 3]` of queries `[N, 3]` in `env` from their expansion there.

    Args:
        env: the environment of the decision, whose facts are counted.
        atoms: the states.
        query: the query of each state.
        found: the successors of the states in `env`.
        matches: whether to count the facts that match each atom.
    """
    counted = None
    if matches:
        owner = found.owner.clamp(max=len(query) - 1)
        counted = count_matches(env, atoms, query), count_matches(env, found.successors, query[owner])
    return Decision(atoms, query, found.successors, found.owner, rule_numbers(found), counted)


def count_matches(env: ReasoningEnv, atoms: Tensor, query: Tensor) -> Tensor:
    """Count the facts of `env` that match each atom `[N, A, 3]`, without the query `[N, 3]`, `[N, A]`."""
    size = atoms.shape[1]
    if can_count(atoms) and len(atoms):
        atoms = atoms[:, : int((atoms[..., 0] > 0).sum(-1).amax().clamp(min=1))]
    queries = query.unsqueeze(1).expand_as(atoms).flatten(0, 1)
    found = usable_matches(env.successors.program, atoms.flatten(0, 1), excluded=queries)
    return functional.pad(found.view(atoms.shape[:2]), (0, size - atoms.shape[1]))


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


def make_expand(env: ReasoningEnv, *, matches: bool) -> Expand:
    """Return the function that maps observations of `env` to decisions, with counts of `matches` or not."""

    def expand(tensordict: TensorDictBase) -> Decision:
        found = env.successors(tensordict.get(GOAL))
        return make_decision(env, *_states(tensordict), found, matches=matches)

    return expand


def make_read_goals(env: ReasoningEnv, *, matches: bool) -> ReadGoals:
    """Return the function that maps observations of `env` to goals, with counts of `matches` or not."""

    def read_goals(tensordict: TensorDictBase) -> Goals:
        atoms, query = _states(tensordict)
        return atoms, query, count_matches(env, atoms, query) if matches else None

    return read_goals


def _states(tensordict: TensorDictBase) -> tuple[Tensor, Tensor]:
    """Return states `[N, A, 3]` and queries `[N, 3]` of observations `[*B]`."""
    goal = tensordict.get(GOAL)
    return goal.get("atoms").flatten(0, -3), goal.get("query").flatten(0, -2)
