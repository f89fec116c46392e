"""Edges as matrices, for kernels that work on all pairs of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.graphs.edges import Edges


@dataclass(frozen=True)
class DenseEdges:
    """Edges as matrices over pairs of nodes, source first.

    Attributes:
        mask: `[*B, N, N]` bool, `mask[..., source, target]`.
        attr: `[*B, N, N, D]` or None. Where there is no edge, it is undefined for complete edges and zero for
            others.
    """

    mask: Tensor
    attr: Tensor | None


def dense_edges(edges: Edges, num_nodes: int) -> DenseEdges:
    """Return edges as matrices: a view of complete edges, a scatter of others.

    A matrix has one place per pair, so of parallel edges, with the same source and target, only one is kept.
    Use sparse message passing for graphs that may have parallel edges; `parallel_edges` finds them.

    Args:
        edges: `[*B, 2, E]`, see `Edges`.
        num_nodes: number of nodes N.
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
    """Return which graphs have two edges with the same source and target, `[*B]` bool."""
    slot = _slots(edges, num_nodes)
    places = num_nodes * num_nodes
    count = torch.zeros(*slot.shape[:-1], places + 1, dtype=torch.int64, device=slot.device)
    count = count.scatter_add(-1, slot, torch.ones_like(slot))
    return (count[..., :places] > 1).any(-1)


def _slots(edges: Edges, num_nodes: int) -> Tensor:
    """Return the place `source * N + target` of every edge, `[*B, E]`; absent edges go past the last."""
    source, target = edges.index.unbind(-2)
    return torch.where(edges.mask, source * num_nodes + target, num_nodes * num_nodes)
