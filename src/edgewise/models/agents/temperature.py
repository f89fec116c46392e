"""The learnt weight of the entropy in soft actor-critic."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Temperature(nn.Module):
    """The temperature α, the weight of the entropy bonus, learnt as its logarithm.

    Args:
        initial: the initial temperature.
    """

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(initial)))

    def forward(self) -> Tensor:
        """Return the temperature, 0-d."""
        return self.log.exp()
