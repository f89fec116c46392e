"""What edges are, and the plainest way to have them: read them.

The other ways live beside it: `rules.py` computes them from positions (`Radius`, `Nearest`), `topology.py`
looks them up by an id (`Topology`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor
from torchrl.data import Binary, Bounded, TensorSpec, Unbounded

Lead = tuple[int, ...]
Device = torch.device | str | None


@dataclass(frozen=True)
class Edges:
    """Padded edges of a batch of graphs.

    Attributes:
        index: `[*B, 2, E]` int64; row 0 sends to row 1. Ends of absent edges may be anything in `0 .. N - 1`.
        mask: `[*B, E]` bool.
        attr: `[*B, E, D]` or None.
        complete: true when the E slots are all ordered pairs `source * N + target`, so that a dense
            kernel can view them as `[*B, N, N]` (source, target) without a scatter.
    """

    index: Tensor
    mask: Tensor
    attr: Tensor | None = None
    complete: bool = False


class EdgeSource(ABC):
    """Where the edges of a graph come from.

    Attributes:
        needs_positions: whether graphs must have `pos`.
        needs_types: how many node types graphs must have at least.
    """

    needs_positions: bool = False
    needs_types: int = 0

    @abstractmethod
    def __call__(self, graph: TensorDict) -> Edges:
        """The edges of `graph`."""

    @abstractmethod
    def width(self, position_dim: int) -> int:
        """D, the width of an edge's features where positions have `position_dim` numbers; zero without."""

    def entries(self, lead: Lead, num_nodes: int, device: Device) -> dict[str, TensorSpec]:  # noqa: ARG002
        """The specs of what must be stored with the graph."""
        return {}

    def check(self, num_nodes: int) -> None:  # noqa: B027
        """Raise ValueError where these edges cannot belong to a graph of `num_nodes` slots."""


@dataclass(frozen=True)
class Explicit(EdgeSource):
    """Edges stored with every graph.

    Args:
        num_edges: capacity E.
        num_features: D, zero without edge features.
    """

    num_edges: int = 0
    num_features: int = 0

    def __post_init__(self) -> None:
        for name in ("num_edges", "num_features"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise ValueError(
                    f"Explicit.{name} must be a whole number from 0 up, got {getattr(self, name)}"
                )

    def __call__(self, graph: TensorDict) -> Edges:
        """Read the edges and hide those that touch an absent node."""
        mask, node_mask = graph["edge_mask"], graph["node_mask"]
        index = graph["edge_index"].masked_fill(~mask.unsqueeze(-2), 0)
        attr = graph["edge_attr"] if self.num_features else None
        return Edges(index, mask & ends_exist(index, node_mask), attr)

    def width(self, position_dim: int) -> int:  # noqa: ARG002
        """The number of stored features."""
        return self.num_features

    def entries(self, lead: Lead, num_nodes: int, device: Device) -> dict[str, TensorSpec]:
        """Index, mask and, where there are features, attributes."""
        specs: dict[str, TensorSpec] = {
            "edge_index": Bounded(
                0, max(num_nodes - 1, 0), shape=(*lead, 2, self.num_edges), dtype=torch.int64, device=device
            ),
            "edge_mask": Binary(shape=(*lead, self.num_edges), dtype=torch.bool, device=device),
        }
        if self.num_features:
            specs["edge_attr"] = Unbounded((*lead, self.num_edges, self.num_features), device=device)
        return specs


def ends_exist(index: Tensor, node_mask: Tensor) -> Tensor:
    """Which edges have two existing ends; index `[*B, 2, E]`, node_mask `[*B, N]`, result `[*B, E]`."""
    source, target = index.unbind(-2)
    return node_mask.gather(-1, source) & node_mask.gather(-1, target)


def all_pairs(num_nodes: int, device: Device) -> Tensor:
    """The ends of all ordered pairs in the order `source * N + target`, `[2, N * N]`."""
    pair = torch.arange(num_nodes * num_nodes, device=device)
    return torch.stack((pair // num_nodes, pair % num_nodes))
