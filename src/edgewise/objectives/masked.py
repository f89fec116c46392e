"""Means and variances over masked entries, such as active agents."""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST_SCALE = 1e-4


def masked_mean(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute the mean of `values` where `mask` is true, 0-d; zero if the mask is empty.

    Args:
        values: any shape; masked-out entries may hold anything, NaN included.
        mask: bool, same shape, or None if all entries count.

    Example:
        >>> masked_mean(torch.tensor([1.0, 3.0, float("nan")]), torch.tensor([True, True, False]))
        tensor(2.)
    """
    if mask is None:
        return values.mean()
    return values.masked_fill(~mask, 0.0).sum() / mask.sum().clamp_min(1)


def masked_variance(values: Tensor, mask: Tensor | None = None, *, correction: int = 0) -> Tensor:
    """Compute the variance of `values` where `mask` is true, 0-d; the divisor is the count - `correction`."""
    squares = (values - masked_mean(values, mask)).square()
    if mask is None:
        return squares.sum() / max(values.numel() - correction, 1)
    return squares.masked_fill(~mask, 0.0).sum() / (mask.sum() - correction).clamp_min(1)


def standardise(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Normalise `values` to mean 0 and standard deviation 1 over the masked entries; zero elsewhere."""
    scale = masked_variance(values, mask, correction=1).sqrt().clamp_min(SMALLEST_SCALE)
    scaled = (values - masked_mean(values, mask)) / scale
    return scaled if mask is None else scaled.masked_fill(~mask, 0.0)


def explained_variance(prediction: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute the share of the target's variance that the prediction explains, 0-d.

    1 is perfect; 0 is as good as predicting the mean. The result is finite even if the target is constant.
    """
    limits = torch.finfo(target.dtype)
    residual, total = masked_variance(target - prediction, mask), masked_variance(target, mask)
    return 1 - (residual / total.clamp_min(limits.tiny)).clamp_max(limits.max)
