"""Bounded continuous actions by the arc tangent, whose slope never vanishes as fast as that of tanh."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def squash(z: Tensor) -> Tensor:
    """`(2 / pi) atan z`, within (-1, 1)."""
    return z.atan() * (2 / math.pi)


def smoothed(action: Tensor, noise: float) -> Tensor:
    """An action with some normal noise, cut off at twice its deviation, within the bounds again.

    Values of neighbouring actions are then learnt alike (https://arxiv.org/abs/1802.09477).
    """
    if noise == 0:
        return action
    drawn = torch.randn_like(action).clamp(-2.0, 2.0)
    return torch.add(action, drawn, alpha=noise).clamp(-1.0, 1.0)


def log_slope(z: Tensor) -> Tensor:
    """The log of the derivative of `squash`, `log((2 / pi) / (1 + z^2))`."""
    return math.log(2 / math.pi) - z.square().log1p()


class ArctanNormal:
    """`squash(z)` with `z` normal, independently in each dimension of an action.

    Args:
        loc: `[*B, dim]`, the mean of `z`.
        log_scale: `[*B, dim]`, the log of its deviation.
    """

    def __init__(self, loc: Tensor, log_scale: Tensor) -> None:
        self.loc, self.log_scale = loc, log_scale

    @property
    def mode(self) -> Tensor:
        """The squashed mean: the median in each dimension; what to do without chance, `[*B, dim]`."""
        return squash(self.loc)

    def rsample_and_log_prob(self, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """A draw `[*B, dim]` with gradients, and its log-probability density `[*B]`."""
        noise = torch.randn(self.loc.shape, generator=generator, dtype=self.loc.dtype, device=self.loc.device)
        z = self.loc + self.log_scale.exp() * noise
        normal = -0.5 * noise.square() - self.log_scale - _HALF_LOG_TWO_PI
        return squash(z), (normal - log_slope(z)).sum(-1)

    def sample(self, generator: Generator | None = None) -> Tensor:
        """A draw `[*B, dim]`."""
        return self.rsample_and_log_prob(generator)[0]
