"""Distributions over a fixed set of returns: the Bellman image of one, put back on the set."""

from __future__ import annotations

import torch
from torch import Tensor


def project(probability: Tensor, support: Tensor, *, reward: Tensor, discount: Tensor) -> Tensor:
    """The distribution of `reward + discount * return`, each atom shared between its neighbours.

    What falls beyond the support counts at its end; mass is conserved, and so is the mean wherever nothing
    falls beyond (https://arxiv.org/abs/1707.06887).

    Args:
        probability: `[M, atoms]`, of returns afterwards.
        support: `[atoms]`, evenly ascending.
        reward: `[M]`.
        discount: `[M]`, 0 where the robot's episode ended by itself.

    Returns:
        `[M, atoms]`, without gradient.
    """
    atoms, lowest, highest = support.shape[-1], support[0], support[-1]
    moved = (reward.unsqueeze(-1) + discount.unsqueeze(-1) * support).clamp(lowest, highest)
    place = ((moved - lowest) / (highest - lowest) * (atoms - 1)).clamp(0, atoms - 1)
    below = place.floor()
    above_share = place - below
    lower = below.long()
    upper = (lower + 1).clamp(max=atoms - 1)
    image = torch.zeros_like(probability)
    image = image.scatter_add(-1, lower, probability * (1 - above_share))
    return image.scatter_add(-1, upper, probability * above_share).detach()


def cross_entropy(log_probability: Tensor, target: Tensor) -> Tensor:
    """`[M]` from log-probabilities and target probabilities, both `[M, atoms]`."""
    return -(target * log_probability).sum(-1)
