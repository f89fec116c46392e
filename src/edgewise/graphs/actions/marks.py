"""How an action is marked in a picture of a graph: chosen nodes and edges, labels, arrows, and a caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.keys import ACTIVE

MAX_SHOWN = 6
"""Most nodes, edges or numbers that a caption lists."""


@dataclass(frozen=True)
class ActionMarks:
    """The marks of one action in one world.

    Args:
        text: for the caption; empty for none.
        nodes: chosen node slots.
        edges: chosen edge slots.
        edge_shades: a number in [0, 1] for each edge slot, `[E]`; None for none.
        labels: text for node slots.
        arrows: a vector of length 1 or less for each of the first A node slots, `[A, P]`; None for none.
    """

    text: str = ""
    nodes: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()
    edge_shades: Tensor | None = None
    labels: Mapping[int, str] = field(default_factory=dict)
    arrows: Tensor | None = None


def active_agents(observation: TensorDictBase, num_agents: int) -> Tensor:
    """Return which agents are active in one world, `[A]` bool; all if the observation does not say."""
    active: Tensor | None = observation.get(ACTIVE, None)
    return torch.ones(num_agents, dtype=torch.bool) if active is None else active


def listed(items: Sequence[int] | Sequence[str]) -> str:
    """Return the first few items in words, for a caption."""
    shown = ", ".join(map(str, items[:MAX_SHOWN])) or "none"
    return shown if len(items) <= MAX_SHOWN else f"{shown} and {len(items) - MAX_SHOWN} more"
