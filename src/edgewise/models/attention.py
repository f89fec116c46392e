"""Dot-product attention along edges that carry features, by two paths that give the same answer.

With `W` the edge weights of a head, a logit is `q_i . (k_j + W e_ij)` and a message `v_j + W e_ij`. Both are
linear in `e_ij`, so `W` is moved to the nodes: `q_i . W e_ij = (W' q_i) . e_ij`, and `sum_j a_ij W e_ij = W
sum_j a_ij e_ij`. No tensor of edges times channels is ever made from the edge features, which is what makes
both paths fast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class Weights(NamedTuple):
    """What attention did, for diagnosis.

    Attributes:
        logits: sparse `[L, H]`, dense `[G, H, N, N]` (target, source); after the soft cap.
        alpha: of the same shape; zero where there is no edge.
    """

    logits: Tensor
    alpha: Tensor


class EdgeAttention(nn.Module):
    """The layer of `TransformerConv` (https://arxiv.org/abs/2009.03509), heads concatenated, with a root
    weight.

    Args:
        channels: width of input and output, a multiple of `heads`.
        heads: number of heads.
        edge_features: D, zero for edges without features.
        soft_cap: logits become `cap * tanh(logit / cap)`; unlike clipping this keeps a gradient everywhere.
        beta: gate between message and root instead of adding them.
        dropout: of attention weights, with rescaling.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        *,
        edge_features: int = 0,
        soft_cap: float | None = None,
        beta: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"{channels} channels do not divide into {heads} heads")
        self.channels, self.heads, self.edge_features = channels, heads, edge_features
        self.soft_cap, self.dropout = soft_cap, dropout
        self.project = nn.Linear(channels, 4 * channels)
        self.edge = nn.Linear(edge_features, channels, bias=False) if edge_features else None
        self.gate = nn.Linear(3 * channels, 1, bias=False) if beta else None

    def sparse(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Weights]:
        """Attention over the edges of one union.

        Args:
            h: `[M, channels]`.
            edge_index: `[2, L]`, row 0 sends to row 1.
            edge_attr: `[L, D]` or None.

        Returns:
            `[M, channels]`, and the weights `[L, H]`.
        """
        query, key, value, root = self._project(h)
        source, target = edge_index.unbind(0)
        logits = (query.index_select(0, target) * key.index_select(0, source)).sum(-1)
        if self.edge is not None and edge_attr is not None:
            asked = self._to_edges(query).index_select(0, target)
            logits = logits + (asked * edge_attr.unsqueeze(-2)).sum(-1)
        logits = self._cap(logits)
        alpha = segment_softmax(logits, target, h.shape[0])
        kept = functional.dropout(alpha, self.dropout, self.training).unsqueeze(-1)
        message = _segment_sum(kept * value.index_select(0, source), target, h.shape[0])
        if self.edge is not None and edge_attr is not None:
            heard = _segment_sum(kept * edge_attr.unsqueeze(-2), target, h.shape[0])
            message = message + self._from_edges(heard)
        return self._join(message.flatten(-2), root.flatten(-2)), Weights(logits, alpha)

    def dense(self, h: Tensor, linked: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Weights]:
        """Attention over matrices of all pairs.

        Args:
            h: `[G, N, channels]`.
            linked: `[G, N, N]` bool, target first: who hears whom.
            edge_attr: `[G, N, N, D]`, target first, finite everywhere, or None.

        Returns:
            `[G, N, channels]`, and the weights `[G, H, N, N]`.
        """
        query, key, value, root = self._project(h)
        logits = query.transpose(1, 2) @ key.permute(0, 2, 3, 1)
        if self.edge is not None and edge_attr is not None:
            asked = self._to_edges(query) @ edge_attr.transpose(-1, -2)
            logits = logits + asked.transpose(1, 2)
        logits = self._cap(logits)
        absent = ~linked.unsqueeze(1)
        alpha = logits.masked_fill(absent, torch.finfo(logits.dtype).min).softmax(-1).masked_fill(absent, 0.0)
        kept = functional.dropout(alpha, self.dropout, self.training)
        message = (kept @ value.transpose(1, 2)).transpose(1, 2)
        if self.edge is not None and edge_attr is not None:
            message = message + self._from_edges(kept.transpose(1, 2) @ edge_attr)
        return self._join(message.flatten(-2), root.flatten(-2)), Weights(logits, alpha)

    def _project(self, h: Tensor) -> tuple[Tensor, ...]:
        """Query (scaled), key, value and root, each `[..., H, C]`."""
        query, key, value, root = self.project(h).unflatten(-1, (4, self.heads, -1)).unbind(-3)
        return query / math.sqrt(self.channels // self.heads), key, value, root

    def _edge_weight(self) -> Tensor:
        """`[H, C, D]`."""
        assert self.edge is not None
        return self.edge.weight.unflatten(0, (self.heads, -1))

    def _to_edges(self, query: Tensor) -> Tensor:
        """What each query asks of edge features, `[..., H, C]` to `[..., H, D]`."""
        return torch.einsum("...hc,hcd->...hd", query, self._edge_weight())

    def _from_edges(self, heard: Tensor) -> Tensor:
        """What averaged edge features say, `[..., H, D]` to `[..., H, C]`."""
        return torch.einsum("...hd,hcd->...hc", heard, self._edge_weight())

    def _cap(self, logits: Tensor) -> Tensor:
        return logits if self.soft_cap is None else self.soft_cap * torch.tanh(logits / self.soft_cap)

    def _join(self, message: Tensor, root: Tensor) -> Tensor:
        """Message and root, added or gated; both `[..., channels]`."""
        if self.gate is None:
            return message + root
        beta = torch.sigmoid(self.gate(torch.cat((message, root, message - root), -1)))
        return beta * root + (1 - beta) * message


def segment_softmax(logits: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Softmax of `logits [L, ...]` within each segment; `segment [L]` int64, in any order."""
    index = segment.view(-1, *(1,) * (logits.dim() - 1)).expand_as(logits)
    shape = (num_segments, *logits.shape[1:])
    lowest = logits.new_full(shape, torch.finfo(logits.dtype).min)
    highest = lowest.scatter_reduce(0, index, logits.detach(), "amax")
    weight = (logits - highest.index_select(0, segment)).exp()
    total = _segment_sum(weight, segment, num_segments)
    return weight / total.index_select(0, segment)


def _segment_sum(values: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Sums of `values [L, ...]` by segment, `[num_segments, ...]`."""
    return values.new_zeros(num_segments, *values.shape[1:]).index_add(0, segment, values)
