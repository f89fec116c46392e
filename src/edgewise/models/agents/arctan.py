"""Continuous actions squashed by the arc tangent, whose gradient vanishes more slowly than that of tanh."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def squash(z: Tensor) -> Tensor:
    """Compute `(2 / pi) atan z`, within (-1, 1)."""
    return z.atan() * (2 / math.pi)


def smooth_action(action: Tensor, noise: float) -> Tensor:
    """Add clipped Gaussian noise to an action: the target policy smoothing of TD3.

    The noise is clipped at two standard deviations and the action at [-1, 1]
    (https://arxiv.org/abs/1802.09477).
    """
    if noise == 0:
        return action
    clipped = torch.randn_like(action).clamp(-2.0, 2.0)
    return torch.add(action, clipped, alpha=noise).clamp(-1.0, 1.0)


def log_slope(z: Tensor) -> Tensor:
    """Compute the log-derivative of `squash`, `log((2 / pi) / (1 + z^2))`."""
    return math.log(2 / math.pi) - z.square().log1p()


class ArctanNormal:
    """The distribution of `squash(z)` with `z` normal, independent in each dimension of an action.

    Args:
        loc: `[*B, dim]`, the mean of `z`.
        log_scale: `[*B, dim]`, the log of its standard deviation.
    """

    def __init__(self, loc: Tensor, log_scale: Tensor) -> None:
        self.loc, self.log_scale = loc, log_scale

    @property
    def mode(self) -> Tensor:
        """The squashed mean, `[*B, dim]`, which is the median in each dimension; the deterministic action."""
        return squash(self.loc)

    def rsample_and_log_prob(self, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Sample actions `[*B, dim]` with gradients, and return their log-probability density `[*B]`."""
        noise = torch.randn(self.loc.shape, generator=generator, dtype=self.loc.dtype, device=self.loc.device)
        z = self.loc + self.log_scale.exp() * noise
        normal = -0.5 * noise.square() - self.log_scale - _HALF_LOG_TWO_PI
        return squash(z), (normal - log_slope(z)).sum(-1)

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Sample actions `[*B, dim]`."""
        return self.rsample_and_log_prob(generator)[0]
