"""What a value should have been, one or several steps later, for algorithms that learn values of actions."""

from __future__ import annotations

from torch import Tensor


def bootstrapped(reward: Tensor, discount: Tensor, *, following: Tensor) -> Tensor:
    """`reward + discount * following`, without gradient.

    Args:
        reward: `[M]`, summed and discounted over the steps of a transition.
        discount: `[M]`, of what follows; 0 where the robot's episode ended by itself.
        following: `[M]` or `[M, Q]`, the value of what follows; ignored, not multiplied, where `discount`
            is 0.
    """
    lead = (*reward.shape, *(1,) * (following.dim() - reward.dim()))
    reward, discount = reward.view(lead), discount.view(lead)
    return (reward + discount * following.masked_fill(discount == 0, 0.0)).detach()


def chosen(values: Tensor, action: Tensor) -> Tensor:
    """Of values `[M, A]`, or `[M, Q, A]`, those of the actions `[M]` that were taken, `[M]` or `[M, Q]`."""
    index = action.reshape(len(action), *(1,) * (values.dim() - 1)).expand(*values.shape[:-1], 1)
    return values.gather(-1, index).squeeze(-1)


def double_value(target: Tensor, choosing: Tensor) -> Tensor:
    """What the target network says of the action that the online network likes best.

    One network's errors do not choose what the same errors then value, so the bias upwards of a plain maximum
    is gone (https://arxiv.org/abs/1509.06461).

    Args:
        target: `[M, A]`, or `[M, Q, A]` for quantiles.
        choosing: `[M, A]`, what decides which action.
    """
    return chosen(target, choosing.argmax(-1))
