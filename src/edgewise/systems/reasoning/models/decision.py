"""The choice a policy makes at each goal, built from observations and the resolution engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensordict import TensorDictBase
from torch import Tensor

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
    """

    atoms: Tensor
    query: Tensor
    successors: Tensor
    owner: Tensor
    origin: Tensor


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
    return Decision(atoms, query, found.successors, found.owner, (found.origin + 1).clamp(min=0))


def make_expand(env: ReasoningEnv) -> Expand:
    """Return the function that maps observations of `env` to decisions."""

    def expand(tensordict: TensorDictBase) -> Decision:
        return make_decision(*read_goals(tensordict), env.successors(tensordict.get(GOAL)))

    return expand
