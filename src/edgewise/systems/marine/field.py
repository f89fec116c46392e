"""The current: Rankine vortices whose velocities add up, at any points and on any device."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

CORE_RADIUS = 0.5
EDGE_SPEED = 3.0
CIRCULATION = 2.0 * math.pi * CORE_RADIUS * EDGE_SPEED
"""What a vortex carries whose water moves at `EDGE_SPEED` on the edge of its core."""


class Vortices(NamedTuple):
    """Vortices as each of P points meets them, each `[C, *B, P]`: C first, so that sums run along memory.

    Attributes:
        x: north of their centres.
        y: east of their centres.
        strength: circulation over 2π, positive for clockwise turns, zero where there is no vortex.
    """

    x: Tensor
    y: Tensor
    strength: Tensor


def vortices(cores: Tensor, circulation: Tensor, *, points: int) -> Vortices | None:
    """What `current` needs of vortices at `cores` `[*B, C, 2]` for so many points; None where C is zero."""
    if not cores.shape[-2]:
        return None
    x, y = cores.unbind(-1)
    parts = (x, y, circulation / (2.0 * math.pi))
    return Vortices(*(part.movedim(-1, 0).unsqueeze(-1).repeat_interleave(points, -1) for part in parts))


def current(x: Tensor, y: Tensor, around: Vortices) -> tuple[Tensor, Tensor]:
    """The current's components north and east at points `x` and `y` `[*B, P]`, each `[*B, P]`.

    A vortex at distance n turns the water at speed `Γ n / (2π r²)` inside its core and `Γ / (2π n)` outside,
    which is `Γ / (2π max(n², r²))` for each metre: no root, and no division by zero at the centre.
    """
    north, east = around.x - x, around.y - y
    square = torch.addcmul(north * north, east, east).clamp_(min=CORE_RADIUS**2)
    turn = around.strength / square
    return -(turn * east).sum(0), (turn * north).sum(0)


def velocity(points: Tensor, *, cores: Tensor, circulation: Tensor) -> Tensor:
    """The current at `points` `[*B, P, 2]`, as `[*B, P, 2]`; still water where there are no vortices.

    Args:
        points: anywhere.
        cores: centres of the vortices, `[*B, C, 2]`.
        circulation: `[*B, C]`, positive where a vortex turns clockwise, zero where there is none.
    """
    around = vortices(cores, circulation, points=points.shape[-2])
    if around is None:
        return torch.zeros_like(points)
    x, y = points.unbind(-1)
    return torch.stack(current(x, y, around), -1)
