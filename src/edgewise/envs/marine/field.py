"""The current: Rankine vortices whose velocities add up, at any points and on any device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

CORE_RADIUS = 0.5
EDGE_SPEED = 3.0
CIRCULATION = 2.0 * math.pi * CORE_RADIUS * EDGE_SPEED
"""What a vortex carries whose water moves at `EDGE_SPEED` on the edge of its core."""


def current(x: Tensor, y: Tensor, *, cores: Tensor, circulation: Tensor) -> tuple[Tensor, Tensor]:
    """The current's two components at points `[*B, P]`, each `[*B, P]`.

    A vortex at distance n turns the water at speed `Γ n / (2π r²)` inside its core and `Γ / (2π n)` outside,
    which is `Γ / (2π max(n², r²))` for each metre: no root, and no division by zero at the centre.

    Args:
        x: north of the points.
        y: east of the points.
        cores: centres of the vortices, `[*B, C, 2]`.
        circulation: `[*B, C]`, positive where a vortex turns clockwise, zero where there is none.
    """
    core_x, core_y = cores.unsqueeze(-3).unbind(-1)
    ahead, aside = core_x - x.unsqueeze(-1), core_y - y.unsqueeze(-1)
    square = torch.addcmul(ahead * ahead, aside, aside).clamp_(min=CORE_RADIUS**2)
    turn = (circulation / (2.0 * math.pi)).unsqueeze(-2) / square
    return -(turn * aside).sum(-1), (turn * ahead).sum(-1)


def velocity(points: Tensor, *, cores: Tensor, circulation: Tensor) -> Tensor:
    """The current at `points` `[*B, P, 2]`, as `[*B, P, 2]`; still water where there are no cores."""
    if not cores.shape[-2]:
        return torch.zeros_like(points)
    return torch.stack(current(*points.unbind(-1), cores=cores, circulation=circulation), -1)
