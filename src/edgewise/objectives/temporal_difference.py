"""Temporal-difference targets for algorithms that learn action values."""

from __future__ import annotations

from torch import Tensor


def td_target(reward: Tensor, discount: Tensor, *, next_value: Tensor) -> Tensor:
    """Compute `reward + discount * next_value`, without gradient.

    Args:
        reward: `[M]`, the discounted sum over the steps of a transition.
        discount: `[M]`, of the next value; 0 at a termination.
        next_value: `[M]` or `[M, Q]`; ignored, not multiplied, where `discount` is 0.

    Example:
        >>> import torch
        >>> reward, discount = torch.tensor([1.0, 1.0]), torch.tensor([0.9, 0.0])
        >>> td_target(reward, discount, next_value=torch.tensor([10.0, float("nan")]))
        tensor([10.,  1.])
    """
    lead = (*reward.shape, *(1,) * (next_value.dim() - reward.dim()))
    reward, discount = reward.view(lead), discount.view(lead)
    return (reward + discount * next_value.masked_fill(discount == 0, 0.0)).detach()


def gather_actions(values: Tensor, action: Tensor) -> Tensor:
    """Select the values of the actions taken: `[M]` from `[M, A]`, or `[M, Q]` from `[M, Q, A]`."""
    index = action.reshape(len(action), *(1,) * (values.dim() - 1)).expand(*values.shape[:-1], 1)
    return values.gather(-1, index).squeeze(-1)


def double_q_value(target: Tensor, online: Tensor) -> Tensor:
    """Return the target network's value of the action that is greedy in `online`.

    Choosing and evaluating with different networks removes the overestimation of a plain maximum
    (https://arxiv.org/abs/1509.06461).

    Args:
        target: `[M, A]`, or `[M, Q, A]` for quantiles.
        online: `[M, A]`, the values that choose the action.
    """
    return gather_actions(target, online.argmax(-1))
