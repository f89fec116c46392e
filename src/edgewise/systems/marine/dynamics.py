"""Dynamics of a boat: three degrees of freedom, two thrusters, ten semi-implicit Euler sub-steps per step.

World frame: x north, y east, headings clockwise from north. Body frame: x forward, y to starboard.
Shapes: `[*B, A]` robots, which exert no forces on each other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from edgewise.scale.devices import constant
from edgewise.systems.marine import field

SUBSTEP = 0.05
SUBSTEPS = 10
STEP_SECONDS = SUBSTEP * SUBSTEPS
MASS = 400.0
ADDED_SURGE = 20.0
"""Subtracted from the mass in surge: the reference's coefficient has the opposite of the usual sign."""
SURGE_INERTIA, SWAY_INERTIA, YAW_INERTIA = MASS - ADDED_SURGE, MASS, 1430.0
LINEAR_DRAG, SQUARE_DRAG = 100.0, 150.0
LINEAR_YAW_DRAG, SQUARE_YAW_DRAG = 980.0, 950.0
THRUSTER_ARM = 1.25
LEAST_THRUST, MOST_THRUST = -500.0, 1000.0
THRUST_RATE = 1000.0
"""Newtons per second that a continuous action of 1 adds."""
RATES = (0.0, -0.5, -1.0, 0.5, 1.0)
"""Continuous actions of the discrete choices of one thruster."""
NUM_CHOICES = len(RATES) ** 2
LENGTH, WIDTH = 5.0, 2.5
RADIUS = 0.5 * math.hypot(LENGTH, WIDTH)


class Motion(NamedTuple):
    """Position, velocity and thrust of robots.

    Attributes:
        position: `[*B, A, 2]`.
        heading: `[*B, A]`, in [0, 2π).
        through_water: `[*B, A, 3]`, velocity relative to the water in world axes, and the yaw rate.
        over_ground: `[*B, A, 3]`, velocity and yaw rate with which the last sub-step moved the robot.
        thrust: `[*B, A, 2]` newtons, left and right.
    """

    position: Tensor
    heading: Tensor
    through_water: Tensor
    over_ground: Tensor
    thrust: Tensor


def choices(like: Tensor) -> Tensor:
    """Return the 25 discrete actions as continuous ones, `[25, 2]`, with the dtype and device of `like`."""
    rates = constant(RATES, like, dtype=like.dtype)
    return torch.cartesian_prod(rates, rates)


def thrust_after(thrust: Tensor, action: Tensor) -> Tensor:
    """Return the thrust after a continuous action, both `[*B, A, 2]`, clipped to the thrusters' limits."""
    return torch.add(thrust, action, alpha=THRUST_RATE * STEP_SECONDS).clamp_(LEAST_THRUST, MOST_THRUST)


def move(motion: Motion, action: Tensor, *, cores: Tensor, circulation: Tensor) -> Motion:
    """Advance the robots by one step of half a second.

    Args:
        motion: current motion; `over_ground` is not read.
        action: `[*B, A, 2]`, change of thrust, 1 for 500 N.
        cores: `[*B, C, 2]`, centres of the vortices.
        circulation: `[*B, C]`, signed, zero for absent vortices.
    """
    x, y = motion.position.unbind(-1)
    water_x, water_y, yaw_rate = motion.through_water.unbind(-1)
    thrust = thrust_after(motion.thrust, action)
    left, right = thrust.unbind(-1)
    push, turn = left + right, THRUSTER_ARM * (left - right)
    heading = motion.heading
    around = field.vortices(cores, circulation, points=heading.shape[-1])
    for _ in range(SUBSTEPS):
        over_x, over_y = water_x, water_y
        if around is not None:
            current_x, current_y = field.current(x, y, around)
            over_x, over_y = water_x + current_x, water_y + current_y
        over_yaw = yaw_rate
        x, y = torch.add(x, over_x, alpha=SUBSTEP), torch.add(y, over_y, alpha=SUBSTEP)
        heading = torch.add(heading, yaw_rate, alpha=SUBSTEP)
        cos, sin = heading.cos(), heading.sin()
        surge, sway = to_body(water_x, water_y, cos, sin)
        ahead, aside = (surge, sway) if around is None else to_body(over_x, over_y, cos, sin)
        surge, sway, yaw_rate = _accelerate(
            surge, sway, yaw_rate, ahead=ahead, aside=aside, push=push, turn=turn
        )
        water_x, water_y = to_world(surge, sway, cos, sin)
    return Motion(
        position=torch.stack((x, y), -1),
        heading=heading.remainder(2.0 * math.pi),
        through_water=torch.stack((water_x, water_y, yaw_rate), -1),
        over_ground=torch.stack((over_x, over_y, over_yaw), -1),
        thrust=thrust,
    )


def _accelerate(
    surge: Tensor, sway: Tensor, yaw_rate: Tensor, *, ahead: Tensor, aside: Tensor, push: Tensor, turn: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return surge, sway and yaw rate through the water after one sub-step; `ahead`, `aside` are over ground.

    `380 u̇ = 400 r v − (100 + 150 |u_r|) u_r + T_l + T_r`,
    `400 v̇ = −400 r u + 20 u_r r − (100 + 150 |v_r|) v_r`,
    `1430 ṙ = −20 u_r v_r − (980 + 950 |r|) r + 1.25 (T_l − T_r)`.
    """
    forward = torch.addcmul(push, yaw_rate, aside, value=MASS).sub_(_drag(surge, LINEAR_DRAG, SQUARE_DRAG))
    starboard = torch.add(ADDED_SURGE * surge, ahead, alpha=-MASS).mul_(yaw_rate)
    starboard.sub_(_drag(sway, LINEAR_DRAG, SQUARE_DRAG))
    spin = torch.addcmul(turn, surge, sway, value=-ADDED_SURGE)
    spin.sub_(_drag(yaw_rate, LINEAR_YAW_DRAG, SQUARE_YAW_DRAG))
    return (
        torch.add(surge, forward, alpha=SUBSTEP / SURGE_INERTIA),
        torch.add(sway, starboard, alpha=SUBSTEP / SWAY_INERTIA),
        torch.add(yaw_rate, spin, alpha=SUBSTEP / YAW_INERTIA),
    )


def _drag(speed: Tensor, linear: float, square: float) -> Tensor:
    return speed.abs().mul_(square).add_(linear).mul_(speed)


def to_body(x: Tensor, y: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate world vectors into body frames, given cosine and sine of the headings."""
    return torch.addcmul(x * cos, y, sin), torch.addcmul(y * cos, x, sin, value=-1.0)


def to_world(forward: Tensor, starboard: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate body vectors into the world frame, the inverse of `to_body`."""
    return torch.addcmul(forward * cos, starboard, sin, value=-1.0), torch.addcmul(
        starboard * cos, forward, sin
    )


def length(vector: Tensor) -> Tensor:
    """Compute the Euclidean length of the last dimension; cheaper than a norm for two components."""
    return torch.hypot(vector[..., 0], vector[..., 1])
