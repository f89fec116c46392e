"""Edges, the base of edge sources, and edges that are stored with every graph.

Other edge sources: `rules.py` computes edges from positions (`Radius`, `Nearest`); `topology.py` looks them
up by an id (`Topology`).
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
        index: `[*B, 2, E]` int64, sources in row 0 and targets in row 1. Ends of absent edges may be any
            number in `0 .. N - 1`.
        mask: `[*B, E]` bool.
        attr: `[*B, E, D]` or None.
        complete: whether the E slots are all ordered pairs `source * N + target`, so that they can be viewed
            as a matrix `[*B, N, N]` (source, target) without a scatter.
        simple: whether no two edges have the same source and target; always true if complete.
        overflow: whether some edges are missing because the E slots did not suffice, 0-d bool; None if that
            cannot happen.
    """

    index: Tensor
    mask: Tensor
    attr: Tensor | None = None
    complete: bool = False
    simple: bool = False
    overflow: Tensor | None = None


class EdgeSource(ABC):
    """Base of the ways to get the edges of a graph.

    Attributes:
        needs_positions: whether graphs must have `pos`.
        needs_types: smallest number of node types that graphs must have.
    """

    needs_positions: bool = False
    needs_types: int = 0

    @abstractmethod
    def __call__(self, graph: TensorDict) -> Edges:
        """Return the edges of `graph`."""

    @abstractmethod
    def width(self, position_dim: int) -> int:
        """Return the number of edge features D for positions of `position_dim` numbers; zero without."""

    def entries(self, lead: Lead, num_nodes: int, device: Device) -> dict[str, TensorSpec]:  # noqa: ARG002
        """Return the specs of the entries that must be stored with the graph."""
        return {}

    def check(self, num_nodes: int) -> None:  # noqa: B027
        """Raise ValueError if these edges do not fit a graph of `num_nodes` node slots."""


@dataclass(frozen=True)
class Explicit(EdgeSource):
    """Edges stored with every graph.

    Args:
        num_edges: number of edge slots E.
        num_features: number of edge features D.
    """

    num_edges: int = 0
    num_features: int = 0

    def __post_init__(self) -> None:
        for name in ("num_edges", "num_features"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise ValueError(
                    f"Explicit.{name} must be an integer of at least 0, got {getattr(self, name)}"
                )

    def __call__(self, graph: TensorDict) -> Edges:
        """Read the edges and mask those with an absent end."""
        mask, node_mask = graph["edge_mask"], graph["node_mask"]
        index = graph["edge_index"].masked_fill(~mask.unsqueeze(-2), 0)
        attr = graph["edge_attr"] if self.num_features else None
        return Edges(index, mask & ends_exist(index, node_mask), attr)

    def width(self, position_dim: int) -> int:  # noqa: ARG002
        """Return the number of stored features."""
        return self.num_features

    def entries(self, lead: Lead, num_nodes: int, device: Device) -> dict[str, TensorSpec]:
        """Return the specs of index, mask and, if there are features, attributes."""
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
    """Return which edges have two existing ends: `[*B, 2, E]` and node mask `[*B, N]` to `[*B, E]` bool."""
    source, target = index.unbind(-2)
    return node_mask.gather(-1, source) & node_mask.gather(-1, target)


def all_pairs(num_nodes: int, device: Device) -> Tensor:
    """Return the ends of all ordered pairs in the order `source * N + target`, `[2, N * N]`."""
    # Without a remainder, which ONNX cannot take of a size that varies.
    node = torch.arange(num_nodes, device=device)
    source, target = node.unsqueeze(-1).expand(-1, num_nodes), node.expand(num_nodes, -1)
    return torch.stack((source, target)).reshape(2, num_nodes * num_nodes)


def prefers_compact(edges: Edges) -> bool:
    """Return whether absent edges can be dropped without synchronisation: on a CPU in eager mode.

    There dropping them is much faster with padding and a few per cent slower without (benchmarks/bridge.py).
    An accelerator would have to wait for their number. `torch.compile`, `torch.export`, `torch.func`
    transforms and fake tensors do not support data-dependent shapes.
    """
    return edges.mask.device.type == "cpu" and not needs_static_shapes(edges.mask)


def needs_static_shapes(tensor: Tensor) -> bool:
    """Return whether shapes must not depend on data: under a compiler or transform, or for fake tensors."""
    if torch.compiler.is_compiling():
        return True
    return type(tensor) is not Tensor or torch._C._functorch.maybe_current_level() is not None


def may_branch_on(tensor: Tensor) -> bool:
    """Return whether Python may branch on values: on a CPU, where shapes may depend on data."""
    return tensor.device.type == "cpu" and not needs_static_shapes(tensor)
