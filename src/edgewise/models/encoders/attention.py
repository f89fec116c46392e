"""Dot-product attention with edge features, in a sparse and a dense layout with the same result.

With `W` the edge weights of a head, a logit is `q_i . (k_j + W e_ij)` and a message is `v_j + W e_ij`. The
sparse layout computes this with one row per edge. On matrices of all pairs this would need a tensor of pairs
times channels. Both terms are linear in `e_ij`, so the dense layout applies `W` to nodes instead:
`q_i . W e_ij = (W' q_i) . e_ij`, and `sum_j a_ij W e_ij = W sum_j a_ij e_ij`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from edgewise.graphs.edges import may_branch_on, needs_static_shapes
from edgewise.models.native import attention as native

_FEW = 8
"""Largest number of edge features that the dense layout adds one by one."""


class Weights(NamedTuple):
    """Attention logits and weights, for diagnostics.

    Attributes:
        logits: sparse `[L, H]`, dense `[G, H, N, N]` (target, source), which includes
            pairs without an edge.
        alpha: same shape; zero where there is no edge, but uniform for a node without incoming edges.
    """

    logits: Tensor
    alpha: Tensor


class EdgeAttention(nn.Module):
    """The layer of PyG's `TransformerConv` with concatenated heads and a root weight.

    See https://arxiv.org/abs/2009.03509.

    Args:
        channels: width of input and output, a multiple of `heads`.
        heads: number of heads.
        edge_features: D, zero for edges without features.
    """

    def __init__(self, channels: int, heads: int, *, edge_features: int = 0) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"{channels} channels do not divide into {heads} heads")
        self.channels, self.heads, self.edge_features = channels, heads, edge_features
        self.project = nn.Linear(channels, 4 * channels)
        self.edge = nn.Parameter(torch.empty(edge_features, channels)) if edge_features else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise weights as PyG does, uniformly within one over the square root of the inputs."""
        self.project.reset_parameters()
        if self.edge is not None:
            nn.init.uniform_(self.edge, -(self.edge_features**-0.5), self.edge_features**-0.5)

    def sparse(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Weights]:
        """Compute attention over the edges of a sparse batch.

        Args:
            h: `[M, channels]`.
            edge_index: `[2, L]`, from row 0 (source) to row 1 (target).
            edge_attr: `[L, D]` or None.

        Returns:
            `[M, channels]`, and the weights `[L, H]`.
        """
        rows, attr = self.project(h), None if self.edge is None else edge_attr
        weight = None if attr is None else self.edge
        if not needs_static_shapes(rows) and native.takes(rows, attr, heads=self.heads):
            found = native.attend(rows, edge_index, attr, weight, heads=self.heads, in_torch=over_edges)
        else:
            found = over_edges(rows, edge_index, attr, weight, heads=self.heads)
        message, *weights = found
        return message, Weights(*weights)

    def dense(self, h: Tensor, bias: Tensor, planes: Tensor | None) -> tuple[Tensor, Weights]:
        """Compute attention over matrices of all pairs.

        Args:
            h: `[G, N, channels]`.
            bias: `[G, N, N]`, target first: zero where there is an edge, else `no_edge`.
            planes: edge features `[D, G, N, N]`, target first, finite everywhere, or None.

        Returns:
            `[G, N, channels]`, and the weights `[G, H, N, N]`.
        """
        query, key, value, root = self._project(h)
        logits = query.transpose(1, 2) @ key.permute(0, 2, 3, 1)
        if self.edge is not None and planes is not None:
            edge_query = torch.einsum("gihc,dhc->ghid", query, self._edge_weight())
            logits = add_pair_terms(logits, edge_query, planes)
        alpha = (logits + bias.unsqueeze(1)).softmax(-1)
        message = alpha @ value.transpose(1, 2)
        if self.edge is not None and planes is not None:
            edge_sums = pair_sums(alpha, planes)
            message = message + torch.einsum("ghid,dhc->ghic", edge_sums, self._edge_weight())
        message = message.transpose(1, 2).flatten(-2)
        isolated = bias.amax(-1) < 0
        if not may_branch_on(isolated) or isolated.any():
            message = message.masked_fill(isolated.unsqueeze(-1), 0.0)
        return message + root.flatten(-2), Weights(logits, alpha)

    def _project(self, h: Tensor) -> tuple[Tensor, ...]:
        """Compute the scaled query, key, value and root, each `[..., H, C]`."""
        query, key, value, root = self.project(h).unflatten(-1, (4, self.heads, -1)).unbind(-3)
        return query / math.sqrt(self.channels // self.heads), key, value, root

    def _edge_weight(self) -> Tensor:
        """Return the edge weights by head, `[D, H, C]`."""
        assert self.edge is not None
        return self.edge.unflatten(1, (self.heads, -1))


def over_edges(
    rows: Tensor, edge_index: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None, *, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute attention over the edges of a sparse batch in torch, with a row of memory per edge.

    Args:
        rows: query, key, value and root of every node, `[M, 4 * channels]`.
        edge_index: `[2, L]` int64, sources and targets.
        edge_attr: `[L, D]` or None.
        edge_weight: `[D, channels]` or None.
        heads: H.

    Returns:
        The messages with the root `[M, channels]`, the logits and the weights `[L, H]`.
    """
    query, key, value, root = rows.chunk(4, -1)
    query = query / math.sqrt(root.shape[-1] // heads)
    source, target = edge_index.unbind(0)
    key, value = key.index_select(0, source), value.index_select(0, source)
    if edge_attr is not None and edge_weight is not None:
        edge = edge_attr @ edge_weight
        key, value = key + edge, value + edge
    logits = (query.index_select(0, target) * key).unflatten(-1, (heads, -1)).sum(-1)
    alpha = segment_softmax(logits, target, rows.shape[0])  # `len` would fix it in exports
    message = (value.unflatten(-1, (heads, -1)) * alpha.unsqueeze(-1)).flatten(-2)
    message = message.new_zeros(root.shape).index_add(0, target, message)
    return message + root, logits, alpha


def no_edge(dtype: torch.dtype) -> float:
    """Return the bias of a pair without an edge: far below any logit, and finite with a logit added."""
    return torch.finfo(dtype).min / 2


def add_pair_terms(logits: Tensor, edge_query: Tensor, planes: Tensor) -> Tensor:
    """Add the product of queries and edge features to the logits.

    Few features are added one by one, many by one matrix product, whichever is faster.

    Args:
        logits: `[G, H, N, N]`.
        edge_query: `[G, H, N, D]`.
        planes: edge features `[D, G, N, N]`.
    """
    if len(planes) > _FEW:
        return logits + torch.einsum("ghid,dgij->ghij", edge_query, planes)
    for number, plane in enumerate(planes.unbind(0)):
        logits = torch.addcmul(logits, edge_query[..., number : number + 1], plane.unsqueeze(1))
    return logits


def pair_sums(alpha: Tensor, planes: Tensor) -> Tensor:
    """Sum edge features `planes [D, G, N, N]` with weights `alpha [G, H, N, N]` to `[G, H, N, D]`."""
    if len(planes) > _FEW:
        return torch.einsum("ghij,dgij->ghid", alpha, planes)
    return torch.stack([(alpha * plane.unsqueeze(1)).sum(-1) for plane in planes.unbind(0)], -1)


def segment_softmax(logits: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Compute the softmax of `logits [L, ...]` within each segment; `segment [L]` int64, in any order."""
    index = segment.view(-1, *(1,) * (logits.dim() - 1)).expand_as(logits)
    shape = (num_segments, *logits.shape[1:])
    lowest = logits.new_full(shape, torch.finfo(logits.dtype).min)
    highest = lowest.scatter_reduce(0, index, logits.detach(), "amax")
    weight = (logits - highest.index_select(0, segment)).exp()
    total = torch.zeros_like(lowest).index_add(0, segment, weight)
    return weight / total.index_select(0, segment)
