"""The current: a sum of Rankine vortices, evaluated at any points."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

CORE_RADIUS = 0.5
EDGE_SPEED = 3.0
CIRCULATION = 2.0 * math.pi * CORE_RADIUS * EDGE_SPEED
"""Circulation of a vortex with speed `EDGE_SPEED` at the edge of its core."""


class Vortices(NamedTuple):
    """Vortices repeated for P points, each `[C, *B, P]`; C is first so that sums run along memory.

    Attributes:
        x: north coordinate of the centres.
        y: east coordinate of the centres.
        strength: circulation over 2π, positive if clockwise, zero for absent vortices.
    """

    x: Tensor
    y: Tensor
    strength: Tensor


def vortices(cores: Tensor, circulation: Tensor, *, points: int) -> Vortices | None:
    """Prepare vortices at `cores` `[*B, C, 2]` for `current` at `points` points; None if C is zero."""
    if not cores.shape[-2]:
        return None
    x, y = cores.unbind(-1)
    parts = (x, y, circulation / (2.0 * math.pi))
    return Vortices(*(part.movedim(-1, 0).unsqueeze(-1).repeat_interleave(points, -1) for part in parts))


def current(x: Tensor, y: Tensor, around: Vortices) -> tuple[Tensor, Tensor]:
    """Compute the current's north and east components at points `x` and `y` `[*B, P]`, each `[*B, P]`.

    At distance n from a vortex the speed is `Γ n / (2π r²)` inside its core and `Γ / (2π n)` outside. Both
    are `n · Γ / (2π max(n², r²))`, which needs no square root and no division by zero at the centre.
    """
    north, east = around.x - x, around.y - y
    square = torch.addcmul(north * north, east, east).clamp_(min=CORE_RADIUS**2)
    turn = around.strength / square
    return -(turn * east).sum(0), (turn * north).sum(0)


def velocity(points: Tensor, *, cores: Tensor, circulation: Tensor) -> Tensor:
    """Compute the current at points, `[*B, P, 2]`; zero without vortices.

    Args:
        points: `[*B, P, 2]`.
        cores: centres of the vortices, `[*B, C, 2]`.
        circulation: `[*B, C]`, positive if clockwise, zero for absent vortices.
    """
    around = vortices(cores, circulation, points=points.shape[-2])
    if around is None:
        return torch.zeros_like(points)
    x, y = points.unbind(-1)
    return torch.stack(current(x, y, around), -1)
