"""Three ways to have edges: read them (`Explicit`), look them up (`Topology`), or compute them (`Radius`, `Nearest`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
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
        index: `[*B, 2, E]` int64; row 0 sends to row 1. Ends of absent edges may be anything.
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
    """Where the edges of a graph come from."""

    needs_positions = False
    num_features: int = 0

    @abstractmethod
    def __call__(self, graph: TensorDict) -> Edges:
        """The edges of `graph`."""

    def entries(self, lead: Lead, num_nodes: int, device: Device) -> dict[str, TensorSpec]:  # noqa: ARG002
        """The specs of what must be stored with the graph."""
        return {}


@dataclass(frozen=True)
class Explicit(EdgeSource):
    """Edges stored with every graph.

    Args:
        num_edges: capacity E.
        num_features: D, zero without edge features.
    """

    num_edges: int = 0
    num_features: int = 0

    def __call__(self, graph: TensorDict) -> Edges:
        """Read the edges and hide those that touch an absent node."""
        index, mask = graph["edge_index"], graph["edge_mask"]
        return Edges(index, mask & ends_exist(index, graph["node_mask"]), graph.get("edge_attr", None))

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
    flat = index.flatten(-2)
    return node_mask.gather(-1, flat).unflatten(-1, (2, index.shape[-1])).all(-2)


EdgeFeatures = Callable[[TensorDict, Tensor], Tensor]
