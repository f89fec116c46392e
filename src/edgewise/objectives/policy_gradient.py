"""The terms of the PPO loss (https://arxiv.org/abs/1707.06347) as pure functions, one entry per decision."""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, *, clip: float) -> Tensor:
    """Compute the clipped surrogate loss `-min(ratio A, clamp(ratio, 1-clip, 1+clip) A)`.

    Args:
        log_ratio: new minus old log-probability of the action, any shape.
        advantage: same shape.
        clip: ε, the clipping range of the ratio around 1.

    Returns:
        The loss of each decision, same shape.

    Example:
        >>> log_ratio, advantage = torch.tensor([0.0, 1.0]), torch.tensor([2.0, 2.0])
        >>> clipped_surrogate(log_ratio, advantage, clip=0.2)
        tensor([-2.0000, -2.4000])
    """
    ratio = log_ratio.exp()
    with torch.no_grad():
        limited = ratio.clamp(1 - clip, 1 + clip)
        is_clipped = (ratio - limited) * advantage > 0
    return -(torch.where(is_clipped, limited, ratio) * advantage)


def clip_fraction(log_ratio: Tensor, *, clip: float) -> Tensor:
    """Return 1 where the ratio is outside `[1-clip, 1+clip]`, else 0; same shape as `log_ratio`."""
    return ((log_ratio.exp() - 1).abs() > clip).to(log_ratio.dtype)


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """Estimate KL(old ‖ new) from samples of the old policy as `ratio - 1 - log ratio`.

    The estimate is never negative and has low variance (http://joschu.net/blog/kl-approx.html). It has the
    shape of `log_ratio`.
    """
    return log_ratio.expm1() - log_ratio


def squared_error(prediction: Tensor, target: Tensor) -> Tensor:
    """Compute `e² / 2`, equal to `huber` for small errors."""
    return 0.5 * (prediction - target).square()


def huber(prediction: Tensor, target: Tensor, *, delta: float) -> Tensor:
    """Compute the Huber loss: `e² / 2` up to an absolute error of `delta`, linear beyond."""
    size = (prediction - target).abs()
    return torch.where(size <= delta, 0.5 * size.square(), delta * (size - 0.5 * delta))


def value_error(prediction: Tensor, target: Tensor, *, delta: float | None = None) -> Tensor:
    """Compute the value loss: squared error, or Huber if `delta` is given."""
    return squared_error(prediction, target) if delta is None else huber(prediction, target, delta=delta)


def clipped_value_error(
    prediction: Tensor, target: Tensor, *, old: Tensor, clip: float, delta: float | None = None
) -> Tensor:
    """Compute the clipped value loss: the larger error of the prediction and of its clipped version.

    Args:
        prediction: any shape.
        target: same shape.
        old: same shape, the prediction at collection time.
        clip: clipping range of the prediction around `old`.
        delta: see `value_error`.
    """
    clipped = old + (prediction - old).clamp(-clip, clip)
    return torch.maximum(
        value_error(prediction, target, delta=delta), value_error(clipped, target, delta=delta)
    )
