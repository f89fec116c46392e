"""The terms of PPO (https://arxiv.org/abs/1707.06347) as pure functions: one entry per decision."""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, *, clip: float) -> Tensor:
    """`-min(ratio A, clamp(ratio, 1-clip, 1+clip) A)`, of the shape of its inputs.

    Args:
        log_ratio: new less old log-probability of what was done, any shape.
        advantage: of the same shape.
        clip: how far the ratio may leave 1 before it earns nothing more.
    """
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)


def clipped_share(log_ratio: Tensor, *, clip: float) -> Tensor:
    """One where the ratio has left `[1-clip, 1+clip]`, else zero; of the shape of `log_ratio`."""
    return ((log_ratio.exp() - 1).abs() > clip).to(log_ratio.dtype)


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """KL(old ‖ new) from samples of the old policy: `ratio - 1 - log ratio`, never negative and of low
    variance.

    See http://joschu.net/blog/kl-approx.html; of the shape of `log_ratio`.
    """
    return log_ratio.expm1() - log_ratio


def squared_error(prediction: Tensor, target: Tensor) -> Tensor:
    """`e² / 2`, so that it meets `huber` where the error is small."""
    return 0.5 * (prediction - target).square()


def huber(prediction: Tensor, target: Tensor, *, delta: float) -> Tensor:
    """`e² / 2` up to an error of `delta` in either direction, a straight line beyond."""
    size = (prediction - target).abs()
    return torch.where(size <= delta, 0.5 * size.square(), delta * (size - 0.5 * delta))


def value_error(prediction: Tensor, target: Tensor, *, delta: float | None = None) -> Tensor:
    """The critic's error: squared, or Huber's where a `delta` is given."""
    return squared_error(prediction, target) if delta is None else huber(prediction, target, delta=delta)


def clipped_value_error(
    prediction: Tensor, target: Tensor, *, old: Tensor, clip: float, delta: float | None = None
) -> Tensor:
    """The larger of the errors with and without holding the prediction within `clip` of the `old` one.

    All of one shape; `delta` as in `value_error`.
    """
    held = old + (prediction - old).clamp(-clip, clip)
    return torch.maximum(value_error(prediction, target, delta=delta), value_error(held, target, delta=delta))
