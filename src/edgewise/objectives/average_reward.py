"""Running estimate of the average reward per step, for continuing tasks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edgewise.objectives.masked import mean_of_all
from edgewise.scale.processes.group import ALONE, Group


class AverageReward(nn.Module):
    """Exponentially weighted estimate of the long-run average reward (the gain).

    Without a discount, values are differential: `V(s) = r - gain + V(s')`. So `r + V(s') - V(s)` has the gain
    as its mean in any set of states once the values are correct, whereas the mean of `r` alone depends on the
    initial states (Wan, Naik and Sutton, https://arxiv.org/abs/2006.16318). Each batch weighs `decay` times
    as much as the next one; the weights are normalised from the first batch on.

    Args:
        decay: share of the old estimate that an update keeps.

    Example:
        >>> gain = AverageReward(decay=0.5)
        >>> gain.update(torch.tensor([2.0, 4.0]), value=torch.zeros(2), next_value=torch.tensor([0.0, 2.0]))
        >>> gain.mean
        tensor(4.)
    """

    mean: Tensor
    weight: Tensor

    def __init__(self, decay: float = 0.9) -> None:
        super().__init__()
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), got {decay}")
        self.decay = decay
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("weight", torch.zeros(()))

    @torch.no_grad()
    def update(
        self,
        reward: Tensor,
        *,
        value: Tensor,
        next_value: Tensor,
        mask: Tensor | None = None,
        group: Group = ALONE,
    ) -> None:
        """Update the estimate with the steps of a batch.

        Args:
            reward: any shape.
            value: of the state before each step, same shape.
            next_value: of the state after each step, same shape; zero at a termination.
            mask: bool, same shape, true for the steps that count; None if all count.
            group: processes whose steps count too.
        """
        counts = torch.ones_like(self.weight) if mask is None else mask.any().to(self.weight.dtype)
        counts = group.max(counts)
        self.weight.add_(counts * (1 - self.decay) * (1 - self.weight))
        share = counts * (1 - self.decay) / self.weight.clamp_min(torch.finfo(self.weight.dtype).tiny)
        batch_mean = mean_of_all(reward + next_value - value, mask, group=group).to(self.mean.dtype)
        self.mean.add_(share * (batch_mean - self.mean))
