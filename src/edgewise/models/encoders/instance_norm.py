"""Normalisation of each channel over the nodes of each graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edgewise.models.encoders.graph_batch import DenseBatch, GraphBatch

EPSILON = 1e-5
"""Added to variances."""


class InstanceNorm(nn.Module):
    """Gives every channel mean 0 and variance 1 over the nodes of each graph, then a learned scale and shift.

    It removes what all nodes of a graph have in common, so that their embeddings differ from the beginning
    of training (https://arxiv.org/abs/1607.08022). The nodes of a graph depend on each other through it, also
    those that no path connects.

    Args:
        channels: C, the width of embeddings.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Normalise `[M, C]`, or `[G, N, C]` in a dense batch, over the nodes that exist."""
        if isinstance(batch, DenseBatch):
            difference, variance = _of_matrices(h, batch.real)
        else:
            count = h.new_zeros(batch.num_graphs).index_add(0, batch.batch, h.new_ones(len(h)))
            count = count.clamp(min=1).unsqueeze(-1)
            empty = h.new_zeros(batch.num_graphs, h.shape[-1])
            mean = empty.index_add(0, batch.batch, h) / count
            difference = h - mean.index_select(0, batch.batch)
            variance = empty.index_add(0, batch.batch, difference.square()) / count
            variance = variance.index_select(0, batch.batch)
        return difference * (variance + EPSILON).rsqrt() * self.weight + self.bias


def _of_matrices(h: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return differences from the mean `[G, N, C]` and variances `[G, 1, C]` over the real nodes."""
    if real is None:
        difference = h - h.mean(1, keepdim=True)
        return difference, difference.square().mean(1, keepdim=True)
    padding = ~real.unsqueeze(-1)
    count = real.sum(1).clamp(min=1).view(-1, 1, 1)
    difference = h - h.masked_fill(padding, 0.0).sum(1, keepdim=True) / count
    difference = difference.masked_fill(padding, 0.0)
    return difference, difference.square().sum(1, keepdim=True) / count
