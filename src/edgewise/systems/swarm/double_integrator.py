"""The double integrator of GCBF+ (https://arxiv.org/abs/2401.14554): dynamics and a reference controller.

An agent accelerates freely and has a speed limit along each axis. Bodies pass through each other; touching
counts as a collision. All functions take `[*B, A, 2]`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

TIME_STEP = 0.03
MASS = 0.1
MAX_SPEED = 0.5
"""Along each axis."""
SPACING = 0.2
"""Least distance between two agents, and between two goals, at the start."""
REACH = 0.5
"""Length at which the reference controller clips its error."""


def move(position: Tensor, velocity: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """Take one explicit Euler step with force `action` in [-1, 1]²; return position and velocity."""
    accelerated = velocity + TIME_STEP / MASS * action.clamp(-1.0, 1.0)
    return position + TIME_STEP * velocity, accelerated.clamp(-MAX_SPEED, MAX_SPEED)


def reference_action(position: Tensor, velocity: Tensor, goal: Tensor) -> Tensor:
    """Return the action of a linear-quadratic regulator towards the goal, which ignores all others."""
    error = torch.cat((goal - position, -velocity), -1)
    error = error * (REACH / torch.linalg.vector_norm(error, dim=-1, keepdim=True).clamp(min=REACH))
    by_place, by_speed = gains()
    return (by_place * error[..., :2] + by_speed * error[..., 2:]).clamp(-1.0, 1.0)


@cache
def gains() -> tuple[float, float]:
    """Return the feedback gains of position and velocity, for costs of 5 of the state and 1 of the action."""
    from scipy.linalg import solve_discrete_are

    step = np.array([[1.0, TIME_STEP], [0.0, 1.0]])
    force = np.array([[0.0], [TIME_STEP / MASS]])
    cost = solve_discrete_are(step, force, 5.0 * np.eye(2), np.eye(1))
    gain = np.linalg.solve(force.T @ cost @ force + np.eye(1), force.T @ cost @ step)[0]
    return float(gain[0]), float(gain[1])
