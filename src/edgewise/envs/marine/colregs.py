"""The rules of the sea: who crosses gives way to starboard, and who meets head-on passes there."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.envs.marine import dynamics

LEAST_SPEED = 0.5
"""Vessels slower than this neither give way nor need it."""
MARGIN = 1.0
"""Metres added to the other vessel's radius."""


def violation(objects: Tensor, mask: Tensor, velocity: Tensor) -> Tensor:
    """How far each robot's course is off the one that gives way, `[*B, A]` radians; zero where it need not.

    The first of the objects that stands in one of the two zones and is not given way to decides. Angles are
    arguments of products of complex numbers, so that one inverse tangent does for all of them.

    Args:
        objects: `[*B, A, K, 5]`, nearest first: position and velocity in the robot's body frame, radius.
        mask: `[*B, A, K]` bool.
        velocity: `[*B, A, 2]`, the robot's own over ground, in its body frame.
    """
    crossing, head_on = zones(objects, velocity)
    off, outside = _course_error(objects, velocity)
    breach = under_way(objects, mask, velocity) & (crossing | head_on) & outside & (off > 0)
    first = breach & (breach.cumsum(-1) == 1)
    return torch.where(first, off, 0.0).sum(-1)


def zones(objects: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
    """Where the robot must give way because it crosses, or meets another head-on, each `[*B, A, K]` bool.

    Seen from the other vessel's course. Crossing: ahead of it or to port, and bound to its starboard.
    Head-on: ahead of it, and bound the opposite way. Arguments as of `violation`; speeds are not looked at.
    """
    x, y, other_x, other_y, _ = objects.unbind(-1)
    own_x, own_y = velocity.unsqueeze(-2).unbind(-1)
    scale = torch.hypot(other_x, other_y).clamp(min=LEAST_SPEED).reciprocal()
    cos, sin = other_x * scale, other_y * scale
    ahead, aside = dynamics.to_body(-x, -y, cos, sin)
    course_x, course_y = dynamics.to_body(own_x, own_y, cos, sin)
    cut_off = aside + 7.0 > -(7.0 / 12.0) * (ahead - 12.0)
    port = (ahead >= -9.0) & (ahead <= 12.0) & (aside >= -17.0) & (aside <= 0.0) & ~cut_off
    front = (ahead >= 0.0) & (ahead <= 17.0) & (aside.abs() <= 4.5)
    return port & (course_y >= course_x.abs()), front & (-course_x > course_y.abs())


def under_way(objects: Tensor, mask: Tensor, velocity: Tensor) -> Tensor:
    """Which pairs of robot and object both move fast enough for the rules to hold, `[*B, A, K]` bool."""
    fast = torch.hypot(objects[..., 2], objects[..., 3]) >= LEAST_SPEED
    return fast & (dynamics.length(velocity) >= LEAST_SPEED).unsqueeze(-1) & mask


def _course_error(objects: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
    """The angle from the robot's course to that which clears the other to starboard, and where there is one.

    Clearing means to turn from the bearing by `asin(b / D) + atan2(ρ, √(D² − b²))`, b the margin around the
    other at distance D. Within b there is no such course, and a collision.
    """
    x, y, margin = objects[..., 0], objects[..., 1], objects[..., 4] + MARGIN
    own_x, own_y = velocity.unsqueeze(-2).unbind(-1)
    square = torch.addcmul(x * x, y, y) - margin * margin
    tangent = square.clamp(min=0.0).sqrt()
    real, imaginary = tangent * tangent - margin * dynamics.RADIUS, tangent * (margin + dynamics.RADIUS)
    real, imaginary = x * real - y * imaginary, x * imaginary + y * real
    forward, sideways = real * own_x + imaginary * own_y, imaginary * own_x - real * own_y
    return torch.atan2(sideways, forward), square >= 0.0
