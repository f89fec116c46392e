"""Means and variances over masked entries, such as active agents; over all processes of a group."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.scale.processes.group import ALONE, Group

SMALLEST_SCALE = 1e-4


def masked_mean(values: Tensor, mask: Tensor | None = None, *, group: Group = ALONE) -> Tensor:
    """Compute the mean of `values` where `mask` is true, 0-d; zero if the mask is empty.

    Args:
        values: any shape; masked-out entries may hold anything, NaN included.
        mask: bool, same shape, or None if all entries count.
        group: processes whose entries count too. Gradients flow only within a single process.

    Example:
        >>> masked_mean(torch.tensor([1.0, 3.0, float("nan")]), torch.tensor([True, True, False]))
        tensor(2.)
    """
    if group.size > 1:
        total, count = _sum_and_count(values, mask, group)
        return total / count.clamp_min(1)
    if mask is None:
        return values.mean()
    return values.masked_fill(~mask, 0.0).sum() / mask.sum().clamp_min(1)


def masked_variance(
    values: Tensor, mask: Tensor | None = None, *, correction: int = 0, group: Group = ALONE
) -> Tensor:
    """Compute the variance of `values` where `mask` is true, 0-d; the divisor is the count - `correction`."""
    squares = (values - masked_mean(values, mask, group=group)).square()
    if group.size > 1:
        total, count = _sum_and_count(squares, mask, group)
        return total / (count - correction).clamp_min(1)
    if mask is None:
        return squares.sum() / max(values.numel() - correction, 1)
    return squares.masked_fill(~mask, 0.0).sum() / (mask.sum() - correction).clamp_min(1)


def standardise(values: Tensor, mask: Tensor | None = None, *, group: Group = ALONE) -> Tensor:
    """Normalise `values` to mean 0 and standard deviation 1 over the masked entries; zero elsewhere."""
    scale = masked_variance(values, mask, correction=1, group=group).sqrt().clamp_min(SMALLEST_SCALE)
    scaled = (values - masked_mean(values, mask, group=group)) / scale
    return scaled if mask is None else scaled.masked_fill(~mask, 0.0)


def explained_variance(
    prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, group: Group = ALONE
) -> Tensor:
    """Compute the share of the target's variance that the prediction explains, 0-d.

    1 is perfect; 0 is as good as predicting the mean. The result is finite even if the target is constant.
    """
    limits = torch.finfo(target.dtype)
    residual = masked_variance(target - prediction, mask, group=group)
    total = masked_variance(target, mask, group=group)
    return 1 - (residual / total.clamp_min(limits.tiny)).clamp_max(limits.max)


def _sum_and_count(values: Tensor, mask: Tensor | None, group: Group) -> tuple[Tensor, Tensor]:
    """Return the sum of the masked entries over all processes and their number, 0-d each."""
    if mask is None:
        mask = torch.ones_like(values, dtype=torch.bool)
    both = torch.stack([values.masked_fill(~mask, 0.0).sum().double(), mask.sum().double()])
    total, count = group.sum(both).to(values.dtype)
    return total, count
