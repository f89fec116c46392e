"""Statistics over the entries that count: an inactive agent weighs nothing, whatever its slot holds."""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST_SCALE = 1e-4


def masked_mean(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean of `values` where `mask` is true, 0-d; zero where nothing counts.

    Args:
        values: any shape; what stands at entries that do not count may be anything, NaN included.
        mask: bool, of the same shape, or None where all count.
    """
    if mask is None:
        return values.mean()
    return values.masked_fill(~mask, 0.0).sum() / mask.sum().clamp_min(1)


def masked_variance(values: Tensor, mask: Tensor | None = None, *, correction: int = 0) -> Tensor:
    """Variance of `values` where `mask` is true, 0-d; divided by the count less `correction`."""
    squares = (values - masked_mean(values, mask)).square()
    if mask is None:
        return squares.sum() / max(values.numel() - correction, 1)
    return squares.masked_fill(~mask, 0.0).sum() / (mask.sum() - correction).clamp_min(1)


def standardise(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """`values` with mean 0 and standard deviation 1 over the entries that count; zero elsewhere."""
    scale = masked_variance(values, mask, correction=1).sqrt().clamp_min(SMALLEST_SCALE)
    scaled = (values - masked_mean(values, mask)) / scale
    return scaled if mask is None else scaled.masked_fill(~mask, 0.0)


def explained_variance(prediction: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
    """Share of the target's variance that the prediction explains, 0-d; 1 is perfect, 0 is the mean's.

    It is finite even where the target does not vary, so that a world without rewards stops no run.
    """
    numbers = torch.finfo(target.dtype)
    left, all_of_it = masked_variance(target - prediction, mask), masked_variance(target, mask)
    return 1 - (left / all_of_it.clamp_min(numbers.tiny)).clamp_max(numbers.max)
