"""Normalisation layers: per node (the default), and over a whole graph (for comparison)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edgewise.models.encoders.graph_batch import DenseBatch, GraphBatch


class GraphNorm(nn.Module):
    """GraphNorm (https://arxiv.org/abs/2009.03294): each channel is normalised over the nodes of a graph.

    Statistics are over real nodes. They couple all nodes of a graph: a node without a path to an agent
    changes that agent's output, so a policy with this norm cannot run decentralised. For a graph with a
    single node the output is the bias.

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

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Normalise `h`: `[M, C]` in a sparse batch, `[G, N, C]` in a dense one."""
        centred = h - _graph_mean(h, batch) * self.mean_scale
        variance = _graph_mean(centred.square(), batch)
        return self.weight * centred / (variance + self.eps).sqrt() + self.bias


class NodeNorm(nn.LayerNorm):
    """A LayerNorm of each node; it ignores the batch."""

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:  # type: ignore[override]  # noqa: ARG002
        """Normalise `h` over its last dimension."""
        return super().forward(h)


def make_norm(kind: str, channels: int) -> NodeNorm | GraphNorm:
    """Build the norm called `layer` or `graph`."""
    return GraphNorm(channels) if kind == "graph" else NodeNorm(channels)


def _graph_mean(h: Tensor, batch: GraphBatch) -> Tensor:
    """Compute the mean over the real nodes of each node's graph, broadcastable to `h`."""
    if isinstance(batch, DenseBatch):
        real = batch.real.unsqueeze(-1)
        return h.masked_fill(~real, 0.0).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)
    # Padding is a graph of its own.
    total = h.new_zeros(batch.num_graphs, h.shape[-1]).index_add(0, batch.batch, h)
    count = h.new_zeros(batch.num_graphs).index_add(0, batch.batch, h.new_ones(len(h))).clamp(min=1)
    return (total / count.unsqueeze(-1)).index_select(0, batch.batch)
