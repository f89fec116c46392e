"""Normalisation by node, the default everywhere, and over a whole graph, to be compared with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edgewise.models.encoders.views import Dense, View


class GraphNorm(nn.Module):
    """Each channel normalised over the nodes of a graph, with a learnt share of the mean (arXiv:2009.03294).

    Statistics are those of the existing nodes. They tie every node to every other, linked or not: a node
    without any path to an agent changes that agent's output, so a policy with this norm cannot run
    decentralised. A graph of one node comes out as the bias alone.

    Args:
        channels: width of the input.
        eps: added to the variance.
    """

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean_scale = nn.Parameter(torch.ones(channels))
        self.eps = eps

    def forward(self, h: Tensor, view: View) -> Tensor:
        """`h` normalised; `[M, C]` with a sparse view, `[G, N, C]` with a dense one."""
        centred = h - _graph_mean(h, view) * self.mean_scale
        variance = _graph_mean(centred.square(), view)
        return self.weight * centred / (variance + self.eps).sqrt() + self.bias


class NodeNorm(nn.LayerNorm):
    """LayerNorm of each node by itself; takes and ignores the view."""

    def forward(self, h: Tensor, view: View) -> Tensor:  # type: ignore[override]  # noqa: ARG002
        """`h` normalised over its last dimension."""
        return super().forward(h)


def make_norm(kind: str, channels: int) -> NodeNorm | GraphNorm:
    """The norm called `layer` or `graph`."""
    return GraphNorm(channels) if kind == "graph" else NodeNorm(channels)


def _graph_mean(h: Tensor, view: View) -> Tensor:
    """The mean over existing nodes of each node's graph, broadcastable to `h`."""
    if isinstance(view, Dense):
        real = view.real.unsqueeze(-1)
        return h.masked_fill(~real, 0.0).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)
    real = torch.ones_like(view.batch, dtype=torch.bool) if view.real is None else view.real
    total = h.new_zeros(view.num_graphs, h.shape[-1])
    total = total.index_add(0, view.batch, h.masked_fill(~real.unsqueeze(-1), 0.0))
    count = h.new_zeros(view.num_graphs).index_add(0, view.batch, real.to(h.dtype)).clamp(min=1)
    return (total / count.unsqueeze(-1)).index_select(0, view.batch)
