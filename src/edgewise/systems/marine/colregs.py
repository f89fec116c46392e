"""The rules of the sea: who crosses gives way to starboard, and who meets head-on passes there."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from edgewise.systems.marine import dynamics

LEAST_SPEED = 0.5
"""Vessels slower than this neither give way nor need it."""
MARGIN = 1.0
"""Metres added to the other vessel's radius."""


class Encounters(NamedTuple):
    """Two vessels each, in the robot's body frame, one number `[*B, A, K]` or `[*B, A, 1]` for each.

    Attributes:
        x: forward to the other vessel.
        y: to starboard.
        other_x: the other's velocity.
        other_y: likewise.
        radius: of the other.
        own_x: the robot's velocity over ground.
        own_y: likewise.
    """

    x: Tensor
    y: Tensor
    other_x: Tensor
    other_y: Tensor
    radius: Tensor
    own_x: Tensor
    own_y: Tensor


def encounters(objects: Tensor, velocity: Tensor) -> Encounters:
    """Of each robot with what it sees, `[*B, A, K, 5]`, at its own velocity `[*B, A, 2]`."""
    x, y, other_x, other_y, radius = objects.movedim(-1, 0).contiguous().unbind(0)
    own_x, own_y = velocity.unsqueeze(-2).unbind(-1)
    return Encounters(x, y, other_x, other_y, radius, own_x, own_y)


def violation(objects: Tensor, mask: Tensor, velocity: Tensor) -> Tensor:
    """How far each robot's course is off the one that gives way, `[*B, A]` radians; zero where it need not.

    The first of the objects that stands in one of the two zones and is not given way to decides.

    Args:
        objects: `[*B, A, K, 5]`, nearest first: position and velocity in the robot's body frame, radius.
        mask: `[*B, A, K]` bool.
        velocity: `[*B, A, 2]`, the robot's own over ground, in its body frame.
    """
    met = encounters(objects, velocity)
    crossing, head_on = zones(met)
    off, outside = _course_error(met)
    breach = under_way(met) & mask & (crossing | head_on) & outside & (off > 0)
    found = torch.zeros_like(velocity[..., 0])
    for holds, angle in zip(reversed(breach.unbind(-1)), reversed(off.unbind(-1)), strict=True):
        found = torch.where(holds, angle, found)
    return found


def zones(met: Encounters) -> tuple[Tensor, Tensor]:
    """Where the robot must give way because it crosses, or meets another head-on, each `[*B, A, K]` bool.

    Seen from the other vessel's course. Crossing: ahead of it or to port, and bound to its starboard.
    Head-on: ahead of it, and bound the opposite way. Speeds are not looked at.
    """
    square = torch.addcmul(met.other_x * met.other_x, met.other_y, met.other_y)
    scale = square.clamp_(min=LEAST_SPEED**2).rsqrt_()
    cos, sin = met.other_x * scale, met.other_y * scale
    ahead, aside = dynamics.to_body(-met.x, -met.y, cos, sin)
    course_x, course_y = dynamics.to_body(met.own_x, met.own_y, cos, sin)
    cut_off = aside + 7.0 > -(7.0 / 12.0) * (ahead - 12.0)
    port = (ahead >= -9.0) & (ahead <= 12.0) & (aside >= -17.0) & (aside <= 0.0) & ~cut_off
    front = (ahead >= 0.0) & (ahead <= 17.0) & (aside.abs() <= 4.5)
    return port & (course_y >= course_x.abs()), front & (-course_x > course_y.abs())


def under_way(met: Encounters) -> Tensor:
    """Where both vessels move fast enough for the rules to hold, `[*B, A, K]` bool."""
    other = torch.addcmul(met.other_x * met.other_x, met.other_y, met.other_y)
    own = torch.addcmul(met.own_x * met.own_x, met.own_y, met.own_y)
    return (other >= LEAST_SPEED**2) & (own >= LEAST_SPEED**2)


def _course_error(met: Encounters) -> tuple[Tensor, Tensor]:
    """The angle from the robot's course to that which clears the other to starboard, and where there is one.

    Clearing means to turn from the bearing by `asin(b / D) + atan2(ρ, √(D² − b²))`, b the margin around the
    other at distance D. Within b there is no such course, and a collision. Angles are arguments of products
    of complex numbers, so that one inverse tangent does for all of them.
    """
    x, y, margin = met.x, met.y, met.radius + MARGIN
    square = torch.addcmul(x * x, y, y) - margin * margin
    tangent = square.clamp(min=0.0).sqrt_()
    real, imaginary = tangent * tangent - margin * dynamics.RADIUS, tangent * (margin + dynamics.RADIUS)
    real, imaginary = x * real - y * imaginary, x * imaginary + y * real
    forward, sideways = real * met.own_x + imaginary * met.own_y, imaginary * met.own_x - real * met.own_y
    return torch.atan2(sideways, forward), square >= 0.0
