"""Imitation loss for action values: the large margin of DQfD."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.objectives.temporal_difference import gather_actions


def large_margin(values: Tensor, action: Tensor, *, margin: float = 0.8) -> Tensor:
    """Compute the large-margin loss of DQfD (https://arxiv.org/abs/1704.03732), `[M]`, at least 0.

    It is `max_a [Q(a) + margin * (a != action)] - Q(action)`.

    Args:
        values: `[M, A]`.
        action: `[M]`, of the expert.
        margin: how much lower all other values must be.
    """
    margins = torch.full_like(values, margin).scatter(-1, action.unsqueeze(-1), 0.0)
    return (values + margins).amax(-1) - gather_actions(values, action)
