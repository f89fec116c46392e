"""Quantile regression: the quantile Huber loss of QR-DQN and IQN."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def quantile_huber(quantiles: Tensor, target: Tensor, *, levels: Tensor, kappa: float = 1.0) -> Tensor:
    """Compute the quantile Huber loss (https://arxiv.org/abs/1710.10044).

    With `u = target_j - quantile_i`, each pair contributes `|level_i - [u < 0]| huber(u) / kappa`. The loss
    is summed over quantiles and averaged over targets.

    Args:
        quantiles: `[M, Q]`.
        target: `[M, P]`, samples or quantiles, without gradient.
        levels: `[M, Q]` or `[Q]`, the levels of the quantiles, in [0, 1].
        kappa: absolute error beyond which the loss is linear.

    Returns:
        `[M]`.

    Example:
        >>> import torch
        >>> quantiles, target = torch.zeros(1, 2), torch.tensor([[0.5]])
        >>> quantile_huber(quantiles, target, levels=torch.tensor([0.25, 0.75]))
        tensor([0.1250])
    """
    error = target.unsqueeze(-2) - quantiles.unsqueeze(-1)
    tilt = (levels.unsqueeze(-1) - (error < 0).to(levels.dtype)).abs()
    size = functional.huber_loss(error, error.new_zeros(()).expand_as(error), reduction="none", delta=kappa)
    return (tilt * size / kappa).mean(-1).sum(-1)
