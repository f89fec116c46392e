"""Imitation by values: what was done should be worth more than anything else, by a margin."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.objectives.temporal_difference import chosen


def large_margin(values: Tensor, action: Tensor, *, margin: float = 0.8) -> Tensor:
    """How far the best other choice, with the margin added, exceeds the one taken, `[M]`, least 0.

    See https://arxiv.org/abs/1704.03732.

    Args:
        values: `[M, A]`.
        action: `[M]`, what the expert chose.
        margin: what others must stay below by.
    """
    others = torch.full_like(values, margin).scatter(-1, action.unsqueeze(-1), 0.0)
    return (values + others).amax(-1) - chosen(values, action)
