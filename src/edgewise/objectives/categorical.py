"""Categorical distributions of returns (C51, https://arxiv.org/abs/1707.06887): projection and loss."""

from __future__ import annotations

import torch
from torch import Tensor


def project_distribution(probability: Tensor, support: Tensor, *, reward: Tensor, discount: Tensor) -> Tensor:
    """Project the distribution of `reward + discount * return` onto the support.

    The probability of each shifted atom is split between its two neighbours on the support. Returns beyond
    the support are clamped to its ends. Mass is conserved, and so is the mean if nothing is clamped.

    Args:
        probability: `[M, atoms]`, of the next state's returns.
        support: `[atoms]`, evenly spaced and ascending.
        reward: `[M]`.
        discount: `[M]`, 0 at a termination.

    Returns:
        `[M, atoms]`, without gradient.

    Example:
        >>> support = torch.linspace(0, 4, 5)
        >>> certain = torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0]])
        >>> project_distribution(certain, support, reward=torch.tensor([1.5]), discount=torch.tensor([1.0]))
        tensor([[0.0000, 0.0000, 0.5000, 0.5000, 0.0000]])
    """
    atoms, v_min, v_max = support.shape[-1], support[0], support[-1]
    moved = (reward.unsqueeze(-1) + discount.unsqueeze(-1) * support).clamp(v_min, v_max)
    position = ((moved - v_min) / (v_max - v_min) * (atoms - 1)).clamp(0, atoms - 1)
    below = position.floor()
    above_share = position - below
    lower = below.long()
    upper = (lower + 1).clamp(max=atoms - 1)
    projected = torch.zeros_like(probability)
    projected = projected.scatter_add(-1, lower, probability * (1 - above_share))
    return projected.scatter_add(-1, upper, probability * above_share).detach()


def cross_entropy(log_probability: Tensor, target: Tensor) -> Tensor:
    """Compute the cross-entropy `[M]` of log-probabilities to target probabilities, both `[M, atoms]`."""
    return -(target * log_probability).sum(-1)
