"""Quantile regression: how far predicted quantiles are from samples of what they should describe."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def quantile_huber(quantiles: Tensor, target: Tensor, *, levels: Tensor, kappa: float = 1.0) -> Tensor:
    """The quantile Huber loss (https://arxiv.org/abs/1710.10044), summed over quantiles, mean over targets.

    With `u = target_j - quantile_i`, a pair adds `|level_i - [u < 0]| huber(u) / kappa`: at its least,
    a share `level_i` of targets lies below quantile i.

    Args:
        quantiles: `[M, Q]`.
        target: `[M, P]`, samples or quantiles; give it without gradient.
        levels: `[M, Q]` or `[Q]`, of the quantiles, in [0, 1].
        kappa: error beyond which the loss is linear.

    Returns:
        `[M]`.
    """
    error = target.unsqueeze(-2) - quantiles.unsqueeze(-1)
    tilt = (levels.unsqueeze(-1) - (error < 0).to(levels.dtype)).abs()
    size = functional.huber_loss(error, error.new_zeros(()).expand_as(error), reduction="none", delta=kappa)
    return (tilt * size / kappa).mean(-1).sum(-1)
