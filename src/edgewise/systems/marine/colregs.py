"""Collision regulations at sea (COLREGs): giving way in crossing and head-on encounters."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from edgewise.systems.marine import dynamics

LEAST_SPEED = 0.5
"""Speed in m/s below which the rules do not apply to a vessel."""
MARGIN = 1.0
"""Metres added to the other vessel's radius."""


class Encounters(NamedTuple):
    """Encounters of a robot with another vessel, in the robot's body frame, `[*B, A, K]` or `[*B, A, 1]`.

    Attributes:
        x: position of the other vessel, forward.
        y: position of the other vessel, to starboard.
        other_x: velocity of the other vessel, forward.
        other_y: velocity of the other vessel, to starboard.
        radius: radius of the other vessel.
        own_x: velocity of the robot over ground, forward.
        own_y: velocity of the robot over ground, to starboard.
    """

    x: Tensor
    y: Tensor
    other_x: Tensor
    other_y: Tensor
    radius: Tensor
    own_x: Tensor
    own_y: Tensor


def encounters(objects: Tensor, velocity: Tensor) -> Encounters:
    """Build the encounters from perceived objects `[*B, A, K, 5]` and own velocities `[*B, A, 2]`."""
    x, y, other_x, other_y, radius = objects.movedim(-1, 0).contiguous().unbind(0)
    own_x, own_y = velocity.unsqueeze(-2).unbind(-1)
    return Encounters(x, y, other_x, other_y, radius, own_x, own_y)


def violation(objects: Tensor, mask: Tensor, velocity: Tensor) -> Tensor:
    """Compute the angle between each robot's course and the course that gives way, `[*B, A]` radians.

    The first object in one of the two zones to which the robot does not give way counts. The angle is zero
    if there is none.

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
    """Return where the robot must give way in a crossing and in a head-on encounter, each `[*B, A, K]` bool.

    Zones are relative to the other vessel's course. Crossing: the robot is ahead or to port and heads to
    starboard. Head-on: the robot is ahead and heads in the opposite direction. Speeds are ignored.
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
    """Return where both vessels are fast enough for the rules to apply, `[*B, A, K]` bool."""
    other = torch.addcmul(met.other_x * met.other_x, met.other_y, met.other_y)
    own = torch.addcmul(met.own_x * met.own_x, met.own_y, met.own_y)
    return (other >= LEAST_SPEED**2) & (own >= LEAST_SPEED**2)


def _course_error(met: Encounters) -> tuple[Tensor, Tensor]:
    """Compute the angle from the robot's course to the one that clears the other vessel to starboard.

    The clearing course differs from the bearing by `asin(b / D) + atan2(ρ, √(D² − b²))`, where b is the
    margin around the other vessel at distance D. It does not exist within b; the second result says where it
    exists. Angles are arguments of products of complex numbers, so one inverse tangent suffices.
    """
    x, y, margin = met.x, met.y, met.radius + MARGIN
    square = torch.addcmul(x * x, y, y) - margin * margin
    tangent = square.clamp(min=0.0).sqrt_()
    real, imaginary = tangent * tangent - margin * dynamics.RADIUS, tangent * (margin + dynamics.RADIUS)
    real, imaginary = x * real - y * imaginary, x * imaginary + y * real
    forward, sideways = real * met.own_x + imaginary * met.own_y, imaginary * met.own_x - real * met.own_y
    return torch.atan2(sideways, forward), square >= 0.0
