"""Entropy-regularised values and the temperature loss of soft actor-critic."""

from __future__ import annotations

from torch import Tensor


def soft_value(first: Tensor, second: Tensor, *, log_prob: Tensor, temperature: Tensor | float) -> Tensor:
    """Compute the soft value: the minimum of two critics plus the entropy bonus, all `[M]`."""
    return first.minimum(second) - temperature * log_prob


def temperature_loss(temperature: Tensor, log_prob: Tensor, *, target_entropy: float) -> Tensor:
    """Compute the loss of the temperature, 0-d (https://arxiv.org/abs/1812.05905).

    It raises the temperature while the entropy is below its target and lowers it while it is above.

    Args:
        temperature: 0-d, with gradient.
        log_prob: `[M]`, of freshly sampled actions.
        target_entropy: the entropy to hold.
    """
    return -(temperature * (log_prob.detach() + target_entropy)).mean()
