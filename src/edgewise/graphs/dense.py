"""Edges as matrices, for kernels that look at all pairs at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.graphs.edges import Edges


@dataclass(frozen=True)
class DenseEdges:
    """Edges by pair, source first.

    Attributes:
        mask: `[*B, N, N]` bool, `mask[..., source, target]`.
        attr: `[*B, N, N, D]` or None; what it holds where there is no edge is not said for complete edges,
            and zero for others.
    """

    mask: Tensor
    attr: Tensor | None


def dense_edges(edges: Edges, num_nodes: int) -> DenseEdges:
    """The same edges as matrices: a view of complete edges, a scatter of any others.

    A matrix has one place for a pair. Of parallel edges, two from one source to one target, all but one are
    lost; graphs that may have them (`parallel_edges` tells) belong on the sparse path.

    Args:
        edges: `[*B, 2, E]`, see `Edges`.
        num_nodes: N.
    """
    square = (num_nodes, num_nodes)
    if edges.complete:
        attr = None if edges.attr is None else edges.attr.unflatten(-2, square)
        return DenseEdges(edges.mask.unflatten(-1, square), attr)
    slot = _slots(edges, num_nodes)
    places = num_nodes * num_nodes
    mask = edges.mask.new_zeros(*slot.shape[:-1], places + 1).scatter(-1, slot, edges.mask)
    mask = mask[..., :places].unflatten(-1, square)
    if edges.attr is None:
        return DenseEdges(mask, None)
    width = edges.attr.shape[-1]
    column = slot.unsqueeze(-1).expand(*slot.shape, width)
    attr = edges.attr.new_zeros(*slot.shape[:-1], places + 1, width).scatter(-2, column, edges.attr)
    return DenseEdges(mask, attr[..., :places, :].unflatten(-2, square))


def parallel_edges(edges: Edges, num_nodes: int) -> Tensor:
    """Which graphs have two edges from one source to one target, `[*B]` bool."""
    slot = _slots(edges, num_nodes)
    places = num_nodes * num_nodes
    count = torch.zeros(*slot.shape[:-1], places + 1, dtype=torch.int64, device=slot.device)
    count = count.scatter_add(-1, slot, torch.ones_like(slot))
    return (count[..., :places] > 1).any(-1)


def _slots(edges: Edges, num_nodes: int) -> Tensor:
    """The place `source * N + target` of every edge, `[*B, E]`; absent edges go to a place after the last."""
    source, target = edges.index.unbind(-2)
    return torch.where(edges.mask, source * num_nodes + target, num_nodes * num_nodes)
