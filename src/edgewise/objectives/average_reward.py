"""What a policy earns per step in the long run, tracked: the yardstick of tasks that never end."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from edgewise.objectives.masked import masked_mean


class AverageReward(nn.Module):
    """An estimate of the long-run mean reward, or gain, from differences of values.

    In a task without discount, values are relative: `V(s) = r - gain + V(s')`. Turned around, `r + V(s') -
    V(s)` has the gain as its mean in whatever states it is taken, once the values are right, where the mean
    of `r` alone would depend on where worlds begin (Wan, Naik and Sutton, https://arxiv.org/abs/2006.16318).
    Each batch weighs `decay` times the one after it, and the weights sum to one from the first batch on.

    Args:
        decay: how much of the old estimate an update keeps.

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
        self, reward: Tensor, *, value: Tensor, next_value: Tensor, mask: Tensor | None = None
    ) -> None:
        """Take in the steps of a batch.

        Args:
            reward: of every step, any shape.
            value: of the state before it, of the same shape.
            next_value: of the state after it, of the same shape; zero where nothing follows.
            mask: bool, of the same shape, the steps that count; None where all do.
        """
        counts = torch.ones_like(self.weight) if mask is None else mask.any().to(self.weight.dtype)
        self.weight.add_(counts * (1 - self.decay) * (1 - self.weight))
        share = counts * (1 - self.decay) / self.weight.clamp_min(torch.finfo(self.weight.dtype).tiny)
        found = masked_mean(reward + next_value - value, mask).to(self.mean.dtype)
        self.mean.add_(share * (found - self.mean))
