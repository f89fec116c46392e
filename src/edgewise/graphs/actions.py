"""The ways to act on a graph: an environment declares one, and a model builds the head that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ChooseNode:
    """One node of the graph is chosen: action `[*B]` int64, mask `action_mask [*B, N]`."""


@dataclass(frozen=True)
class AgentsDiscrete:
    """Each of the first `num_agents` nodes picks one of `num_actions`: action `[*B, A]` int64.

    The mask, where an environment has one, is `action_mask [*B, A, num_actions]`.
    """

    num_agents: int
    num_actions: int


@dataclass(frozen=True)
class AgentsContinuous:
    """Each of the first `num_agents` nodes gives `dim` numbers in [low, high]: action `[*B, A, dim]`."""

    num_agents: int
    dim: int
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class ChooseIndependentSet:
    """A set of nodes with no edge between two of them: action `[*B, N]` bool, mask `action_mask [*B, N]`.

    Log-probabilities are exact, whether nodes are asked in turn or whole sets are weighed.
    """


@dataclass(frozen=True)
class EdgesDiscrete:
    """Each edge slot picks one of `num_actions`: action `[*B, E]` int64.

    The mask is `action_mask [*B, E, num_actions]`.
    """

    num_actions: int


@dataclass(frozen=True)
class ChooseEdgePerGroup:
    """One edge of each group of edges is chosen, or none: action `[*B, num_groups]` int64, 0 for none.

    The first `num_groups * group_size` edge slots are the groups, one after another. The mask is
    `action_mask [*B, num_groups, 1 + group_size]`, none first; a group that is absent allows none alone.
    """

    num_groups: int
    group_size: int


@dataclass(frozen=True)
class ChooseFromSet:
    """One member of a ragged set of at most `max_choices` is chosen: action `[*B]` int64.

    The mask is `action_mask [*B, max_choices]`. The environment says under `choices [*B, max_choices]` int64
    which nodes, or which edge slots, the members are.
    """

    max_choices: int
    members: Literal["nodes", "edges"] = "nodes"


@dataclass(frozen=True)
class ChooseSuccessor:
    """One of the successors of a state is chosen, of which there may be any number: action `[*B]` int64.

    Successors follow from the state and are not part of the observation. `n_actions [*B]` int64, from 1 to
    `max_choices`, says how many there are; an action is a place among them.
    """

    max_choices: int


ActionLayout = (
    ChooseNode
    | AgentsDiscrete
    | AgentsContinuous
    | ChooseIndependentSet
    | EdgesDiscrete
    | ChooseEdgePerGroup
    | ChooseFromSet
    | ChooseSuccessor
)
