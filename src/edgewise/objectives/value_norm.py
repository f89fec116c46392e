"""Normalise value targets with running statistics of the returns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edgewise.objectives.masked import mean_of_all, variance_of_all
from edgewise.scale.processes.group import ALONE, Group


class ValueNorm(nn.Module):
    """Normalises returns with an exponentially weighted mean and variance.

    Each batch weighs `decay` times as much as the next one. The weights are normalised, so after the first
    `update` the statistics are those of the first batch. The critic's weights are not rescaled.

    Args:
        decay: share of the old statistics that an update keeps.
        smallest_scale: lower bound of the standard deviation.

    Example:
        >>> norm = ValueNorm(decay=0.99)
        >>> norm.update(torch.tensor([8.0, 12.0]))
        >>> norm.normalise(torch.tensor([10.0, 12.0]))
        tensor([0., 1.])
    """

    def __init__(self, decay: float = 0.99, *, smallest_scale: float = 1e-2) -> None:
        super().__init__()
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), got {decay}")
        self.decay, self.smallest_scale = decay, smallest_scale
        self.mean: Tensor
        self.variance: Tensor
        self.weight: Tensor
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("variance", torch.ones(()))
        self.register_buffer("weight", torch.zeros(()))

    @torch.no_grad()
    def update(self, returns: Tensor, mask: Tensor | None = None, *, group: Group = ALONE) -> None:
        """Update the statistics with the returns of all processes, any shape.

        A `mask` that is empty in all of them changes nothing.
        """
        counts = torch.ones_like(self.weight) if mask is None else mask.any().to(self.weight.dtype)
        counts = group.max(counts)
        self.weight.add_(counts * (1 - self.decay) * (1 - self.weight))
        share = counts * (1 - self.decay) / self.weight.clamp_min(torch.finfo(self.weight.dtype).tiny)
        shift = mean_of_all(returns, mask, group=group) - self.mean
        variance = variance_of_all(returns, mask, group=group) + (1 - share) * shift.square()
        self.variance.lerp_(variance, share)
        self.mean.add_(share * shift)

    @property
    def scale(self) -> Tensor:
        """The standard deviation, 0-d; one before the first update."""
        return self.variance.sqrt().clamp_min(self.smallest_scale)

    def normalise(self, returns: Tensor) -> Tensor:
        """Subtract the mean and divide by the standard deviation, any shape."""
        return (returns - self.mean) / self.scale

    def denormalise(self, values: Tensor) -> Tensor:
        """Invert `normalise`."""
        return values * self.scale + self.mean
