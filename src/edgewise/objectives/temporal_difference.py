"""Temporal-difference targets for algorithms that learn action values."""

from __future__ import annotations

from torch import Tensor


def td_target(reward: Tensor, discount: Tensor, *, next_value: Tensor) -> Tensor:
    """Compute `reward + discount * next_value`, without gradient.

    Args:
        reward: `[*D]`, the discounted sum over the steps of a transition.
        discount: `[*D]`, of the next value; 0 at a termination, negative if the other player is to move.
        next_value: `[*D]` or `[*D, Q]`; ignored, not multiplied, where `discount` is 0.

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
    """Select the values of the actions `[*D]`: `[*D]` from `[*D, K]`, or `[*D, Q]` from `[*D, Q, K]`."""
    index = action.reshape(*action.shape, *(1,) * (values.dim() - action.dim())).expand(*values.shape[:-1], 1)
    return values.gather(-1, index).squeeze(-1)


def double_q_value(target: Tensor, online: Tensor) -> Tensor:
    """Return the target network's value of the action that is greedy in `online`.

    Choosing and evaluating with different networks removes the overestimation of a plain maximum
    (https://arxiv.org/abs/1509.06461).

    Args:
        target: `[*D, K]`, or `[*D, Q, K]` for quantiles.
        online: `[*D, K]`, the values that choose the action.
    """
    return gather_actions(target, online.argmax(-1))
