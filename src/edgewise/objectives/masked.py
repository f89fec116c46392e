"""Means and variances over masked entries, such as active agents; over all processes of a group."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.scale.processes.group import ALONE, Group

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


def mean_of_all(values: Tensor, mask: Tensor | None = None, *, group: Group = ALONE) -> Tensor:
    """Compute the masked mean over the entries of all processes of a group, 0-d, for statistics."""
    total, count = _sum_and_count(values, mask, group)
    return total / count.clamp_min(1)


def variance_of_all(
    values: Tensor, mask: Tensor | None = None, *, correction: int = 0, group: Group = ALONE
) -> Tensor:
    """Compute the variance of `values` where `mask` is true, 0-d; the divisor is the count - `correction`.

    The entries of all processes of a group count.
    """
    squares = (values - mean_of_all(values, mask, group=group)).square()
    total, count = _sum_and_count(squares, mask, group)
    return total / (count - correction).clamp_min(1)


def standardise(values: Tensor, mask: Tensor | None = None, *, group: Group = ALONE) -> Tensor:
    """Normalise `values` to mean 0 and standard deviation 1 over the masked entries; zero elsewhere."""
    scale = variance_of_all(values, mask, correction=1, group=group).sqrt().clamp_min(SMALLEST_SCALE)
    scaled = (values - mean_of_all(values, mask, group=group)) / scale
    return scaled if mask is None else scaled.masked_fill(~mask, 0.0)


def explained_variance(
    prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, group: Group = ALONE
) -> Tensor:
    """Compute the share of the target's variance that the prediction explains, 0-d.

    1 is perfect; 0 is as good as predicting the mean. The result is finite even if the target is constant.
    """
    limits = torch.finfo(target.dtype)
    residual = variance_of_all(target - prediction, mask, group=group)
    total = variance_of_all(target, mask, group=group)
    return 1 - (residual / total.clamp_min(limits.tiny)).clamp_max(limits.max)


def _sum_and_count(values: Tensor, mask: Tensor | None, group: Group) -> tuple[Tensor, Tensor]:
    """Return the sum of the masked entries over all processes and their number, 0-d each."""
    kept = values if mask is None else values.masked_fill(~mask, 0.0)
    total = kept.sum().double()
    count = torch.full_like(total, values.numel()) if mask is None else mask.sum().double()
    total, count = group.sum(torch.stack((total, count))).to(values.dtype)
    return total, count
