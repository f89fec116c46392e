"""Risk-sensitive decisions from distributions of returns: the conditional value at risk (CVaR)."""

from __future__ import annotations

import torch
from torch import Tensor


def adaptive_tail_share(distance: Tensor, *, smallest: float, reach: float) -> Tensor:
    """Return a tail share that grows with the distance to the nearest hazard, in `[smallest, 1]`.

    The share is `distance / reach`, clamped. So all returns count from a distance of `reach` on, and only the
    worst ones close to a hazard.

    Args:
        distance: any shape; may be infinite, and negative where there is overlap.
        smallest: the smallest share, in (0, 1].
        reach: distance from which on the share is 1.

    Example:
        >>> adaptive_tail_share(torch.tensor([0.5, 5.0, torch.inf]), smallest=0.1, reach=10.0)
        tensor([0.1000, 0.5000, 1.0000])
    """
    return (distance / reach).clamp(smallest, 1.0)


def scale_levels(levels: Tensor, share: Tensor | None) -> Tensor:
    """Scale quantile levels `[*B, Q]` or `[Q]` into the lower tail of a share `[*B]`.

    The mean of the quantiles at the scaled levels is the CVaR at that share. None is the whole distribution.
    """
    return levels if share is None else levels * share.unsqueeze(-1)


def tail_mean(probability: Tensor, support: Tensor, share: Tensor | None) -> Tensor:
    """Compute the mean of the worst share of a categorical distribution (its CVaR).

    Args:
        probability: `[*B, A, atoms]`.
        support: `[atoms]`, the returns, ascending.
        share: `[*B]` in (0, 1], or None for the plain mean.

    Returns:
        `[*B, A]`.

    Example:
        >>> probability = torch.tensor([[[0.25, 0.25, 0.5]]])
        >>> tail_mean(probability, torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5]))
        tensor([[0.5000]])
    """
    if share is None:
        return (probability * support).sum(-1)
    limit = share.reshape(*share.shape, *(1,) * (probability.dim() - share.dim()))
    below = probability.cumsum(-1)
    counted = torch.minimum(probability, (limit - (below - probability)).clamp(min=0.0))
    return (counted * support).sum(-1) / limit.squeeze(-1)
