"""Ranks in place of returns, which do not depend on the scale of rewards or on outliers."""

from __future__ import annotations

from torch import Tensor


def centred_ranks(values: Tensor) -> Tensor:
    """Return the ranks of `values [C, W]` over the first dimension, evenly from -1/2 to 1/2.

    Equal values share the mean of their ranks, so that values that are all equal have ranks of zero.

    Example:
        >>> centred_ranks(torch.tensor([[3.0], [9.0], [3.0]])).squeeze(1)
        tensor([-0.2500,  0.5000, -0.2500])
    """
    above = (values.unsqueeze(1) > values.unsqueeze(0)).sum(1)
    below = (values.unsqueeze(1) < values.unsqueeze(0)).sum(1)
    return (above - below) / (2 * max(len(values) - 1, 1))
