"""Losses and metrics of behaviour cloning, one entry per decision."""

from __future__ import annotations

from torch import Tensor
from torch.distributions import Distribution


def negative_log_likelihood(distribution: Distribution, expert_action: Tensor) -> Tensor:
    """Compute `-log p(expert_action)`, the loss of behaviour cloning, in the shape of the batch.

    Args:
        distribution: of the policy, batch `[*B]`, or `[*B, A]` if each agent has a distribution of its own.
        expert_action: `[*B, ...]`; it must be legal, or the loss is a very large number.

    Example:
        >>> import torch
        >>> policy = torch.distributions.Categorical(logits=torch.zeros(2, 4))
        >>> negative_log_likelihood(policy, torch.tensor([0, 3]))
        tensor([1.3863, 1.3863])
    """
    return -distribution.log_prob(expert_action)


def exact_match(distribution: Distribution, expert_action: Tensor) -> Tensor:
    """Return 1 where the mode of the policy equals the expert's action in every component, else 0.

    Args:
        distribution: see `negative_log_likelihood`.
        expert_action: see `negative_log_likelihood`.

    Returns:
        Float, in the shape of the distribution's batch.
    """
    same = distribution.mode == expert_action
    event_dims = same.ndim - len(distribution.batch_shape)
    return (same.flatten(-event_dims).all(-1) if event_dims else same).float()
