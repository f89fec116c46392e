"""Bounded continuous actions: a tanh-squashed normal distribution."""

from __future__ import annotations

import math
from functools import cache
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint
from torch.nn import functional

from edgewise.models.distributions.masked import Shape, check_finite

_QUADRATURE_POINTS = 32


class SquashedNormal(Distribution):
    """The distribution of `low + (high - low) (1 + tanh u) / 2` with `u` normal, independent per dimension.

    Log-probabilities are computed from the action by the inverse of tanh, both when acting and when learning,
    so that the two are bit-equal. If tanh is saturated in float precision, the inverse is taken just inside
    the bound. `rsample_and_log_prob`, for gradients through actions, uses `u` and has no such limit.

    Args:
        loc: `[*B, dim]`, the mean of `u`.
        scale: `[*B, dim]`, its standard deviation.
        low: lower bound of actions.
        high: upper bound of actions.
        counted: `[*B]` bool; a row that is false (a padded or inactive agent) always gives the middle of the
            range, with log-probability and entropy 0 and without gradient.

    Example:
        >>> SquashedNormal(torch.zeros(4, 2), torch.ones(4, 2), low=0.0, high=10.0).mode[0]
        tensor([5., 5.])
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        scale: Tensor,
        *,
        low: float = -1.0,
        high: float = 1.0,
        counted: Tensor | None = None,
    ) -> None:
        if not low < high:
            raise ValueError(f"actions need low < high, got low={low} and high={high}")
        check_finite(_of_counted(loc, counted), what="means")
        check_finite(_of_counted(scale, counted), what="deviations")
        self.loc, self.scale, self.counted = loc, scale, counted
        self.middle, self.half = (low + high) / 2, (high - low) / 2
        super().__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

    @property
    def mode(self) -> Tensor:
        """The squashed mean of `u`, `[*B, dim]`, the median in each dimension; the deterministic action."""
        return self._squash(self.loc)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample actions `[*sample_shape, *B, dim]` without gradient."""
        return self._squash(self._draw(sample_shape, generator))

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample actions `[*sample_shape, *B, dim]` with gradients to `loc` and `scale`."""
        return self._squash(self._draw(sample_shape, generator))

    def rsample_and_log_prob(self, sample_shape: Shape = ()) -> tuple[Tensor, Tensor]:
        """Sample actions with gradients, and return their log-probabilities from the same `u`."""
        u = self._draw(sample_shape, None)
        return self._squash(u), self._log_prob_before(u)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[*B]` of actions `[*B, dim]`."""
        edge = 1 - torch.finfo(value.dtype).eps
        return self._log_prob_before(torch.atanh(((value - self.middle) / self.half).clamp(-edge, edge)))

    def entropy(self) -> Tensor:
        """Return entropies `[*B]` by Gauss-Hermite quadrature, exact within 1e-3 for scales up to 2.

        The entropy is `H(u) + E[log |da/du|]`, where `log |da/du|` is `2 (log 2 - u - softplus(-2 u))` plus
        the logarithm of half the range. Points are affine in mean and deviation, and sums over points are
        linear, so that both are matrix products.
        """
        points, weights = _quadrature_for(self.loc)
        minus_2u = torch.stack((self.loc, self.scale), -1) @ points
        tail = functional.softplus(minus_2u) @ weights
        stretch = 2 * (math.log(2) - self.loc - tail) + math.log(self.half)
        normal = 0.5 * math.log(2 * math.pi * math.e) + self.scale.log()
        return self._only_counted((normal + stretch).sum(-1))

    def _draw(self, sample_shape: Shape, generator: Generator | None) -> Tensor:
        shape = (*sample_shape, *self.loc.shape)
        noise = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device, generator=generator)
        return self.loc + self.scale * noise

    def _squash(self, u: Tensor) -> Tensor:
        action = self.middle + self.half * torch.tanh(u)
        if self.counted is None:
            return action
        return action.masked_fill(~self.counted.unsqueeze(-1), self.middle)

    def _log_prob_before(self, u: Tensor) -> Tensor:
        """Return the log-probability of the action at `u`, its value before squashing."""
        normal = (
            -0.5 * ((u - self.loc) / self.scale).square() - self.scale.log() - 0.5 * math.log(2 * math.pi)
        )
        return self._only_counted((normal - _log_slope(u) - math.log(self.half)).sum(-1))

    def _only_counted(self, rows: Tensor) -> Tensor:
        return rows if self.counted is None else rows.masked_fill(~self.counted, 0.0)


def _of_counted(values: Tensor, counted: Tensor | None) -> Tensor:
    """Return `[*B, dim]` values with ones in rows that are not counted."""
    return values if counted is None else values.masked_fill(~counted.unsqueeze(-1), 1.0)


def _log_slope(u: Tensor) -> Tensor:
    """Compute `log(1 - tanh(u)^2)` without cancellation."""
    return 2 * (math.log(2) - u - functional.softplus(-2 * u))


def _quadrature_for(like: Tensor) -> tuple[Tensor, Tensor]:
    """Return quadrature points and weights for `like`; fake tensors are not cached."""
    make = _hermite.__wrapped__ if isinstance(like, FakeTensor) else _hermite
    return make(like.dtype, like.device)


@cache
def _hermite(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return Gauss-Hermite quadrature for a normal: points `[2, P]` and weights `[P]`.

    Mean and deviation `[..., 2]` times the points are `-2 u` at these points.
    """
    import numpy

    points, weights = numpy.polynomial.hermite_e.hermegauss(_QUADRATURE_POINTS)
    return (
        torch.tensor(numpy.stack((numpy.full_like(points, -2), -2 * points)), dtype=dtype, device=device),
        torch.tensor(weights / weights.sum(), dtype=dtype, device=device),
    )
