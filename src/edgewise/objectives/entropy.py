"""Entropy as part of the reward, and the temperature that weighs it, after soft actor-critic."""

from __future__ import annotations

from torch import Tensor


def soft_value(first: Tensor, second: Tensor, *, log_prob: Tensor, temperature: Tensor | float) -> Tensor:
    """The lesser of two critics' values plus the entropy of the action, all `[M]`."""
    return first.minimum(second) - temperature * log_prob


def temperature_loss(temperature: Tensor, log_prob: Tensor, *, wanted: float) -> Tensor:
    """Moves the temperature up while entropy is below `wanted`, and down while it is above, 0-d.

    See https://arxiv.org/abs/1812.05905.

    Args:
        temperature: 0-d, with gradient.
        log_prob: `[M]`, of fresh actions.
        wanted: the entropy to hold.
    """
    return -(temperature * (log_prob.detach() + wanted)).mean()
