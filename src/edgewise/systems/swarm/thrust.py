"""Hand-written continuous thrust: drive at the goal and brake in time, and a planner that keeps clear.

Both use the whole action space, a force in [-1, 1]², where the planners of `baselines` choose among five
directions. An agent observes positions and velocities of bodies within `REACH`, and its own goal.
"""

from __future__ import annotations

import math

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.scale.devices import constant
from edgewise.systems.swarm import dynamics

KEPT = 1.0 - dynamics.DAMPING
"""Share of its velocity that an agent keeps in a step without thrust."""
PUSH = dynamics.TIME_STEP * dynamics.SENSITIVITY
"""Change of velocity in a step by a full thrust along one axis."""
BRAKING_STEPS = 4
"""Steps in which an agent at full speed comes to rest."""

HEADINGS, STRENGTHS = 16, (1.0, 0.6, 0.3)
"""Directions and sizes of thrusts that the planner tries, besides the drive at the goal."""
HOLDS = (1, 2, 3)
"""Steps for which a plan holds its thrust before it drives at the goal."""
REACH = 0.5
"""Distance within which a body is taken into account."""
NEAREST = 8
"""Largest number of bodies that an agent takes into account."""
UNSURE = (0.05, 0.1, 0.15, 0.2, 0.2)
"""Largest error of the predicted place of a moving body after each step of a plan."""
CAUTION = (2.0, 1.2, 0.8, 0.4, 0.2)
"""Weight of a predicted contact in each step: later ones can still be avoided by another plan."""
PER_DISTANCE = 25.0
"""Worth of a unit of distance at the end of a plan: the goal reward of the steps that it takes."""


def drive(position: Tensor, velocity: Tensor, goal: Tensor) -> Tensor:
    """Return the thrust `[..., 2]` that drives at the goal as fast as an agent can still brake.

    The speed after this step is the largest from which full braking comes to rest at the goal or before it.
    """
    way = goal - position
    left = dynamics.length(way)
    speed = _speed_for(left)
    wanted = way * (speed / left.clamp(min=1e-9)).unsqueeze(-1)
    return ((wanted - KEPT * velocity) / PUSH).clamp(-1.0, 1.0)


def _speed_for(distance: Tensor) -> Tensor:
    """Return the largest speed whose own step and braking distance are within `distance`.

    From speed v the next speeds are KEPT v - PUSH and so on, down to 0. If braking takes k steps, the way is
    `TIME_STEP * (a v - b)` with `a = 1 + KEPT + ... + KEPT^k`; it takes k steps from the speed `start` on.
    """
    speed = torch.zeros_like(distance)
    slope, offset, start, lost = 0.0, 0.0, 0.0, 0.0
    for step in range(BRAKING_STEPS):
        slope += KEPT**step
        offset += PUSH * lost
        candidate = (distance / dynamics.TIME_STEP + offset) / slope
        speed = torch.where(candidate >= start, candidate, speed)
        start += PUSH * KEPT ** -(step + 1)
        lost += KEPT**step
    return speed.clamp(max=dynamics.MAX_SPEED)


def plan(state: TensorDict, *, goal_reward: float, goal_threshold: float, collision_cost: float) -> Tensor:
    """Return the thrust `[B, A, 2]` of the plan with the highest predicted reward, of 147 for each agent.

    A plan holds a thrust for some steps, then drives at the goal. Other bodies are predicted at constant
    velocity.

    Args:
        state: of the worlds, `[B]`.
        goal_reward: reward of a step at the goal.
        goal_threshold: distance to the goal that counts as there.
        collision_cost: cost of a contact.
    """
    own, moving, target = state["position"], state["velocity"], state["goal"].unsqueeze(-2)
    bodies, drift, near = _bodies(state)
    moves = (dynamics.length(drift) / PUSH).clamp(max=1.0).unsqueeze(-2)
    thrusts = _thrusts(own, moving, state["goal"])
    choices = thrusts.repeat_interleave(len(HOLDS), -2)
    hold = constant(HOLDS, own).repeat(thrusts.shape[-2]).unsqueeze(-1)
    position, velocity = own.unsqueeze(-2), moving.unsqueeze(-2)
    # Between what a contact costs and what a step of delay does: who fears contacts alone stops in a crowd.
    price = math.sqrt(collision_cost * goal_reward)
    worth = torch.zeros(choices.shape[:-1], device=own.device)
    for step, (unsure, caution) in enumerate(zip(UNSURE, CAUTION, strict=True)):
        thrust = torch.where(hold > step, choices, drive(position, velocity, target))
        force = dynamics.SENSITIVITY * thrust
        if step == 0:
            force = force + state["contact"].unsqueeze(-2)
        position, velocity = dynamics.move(position, velocity, force)
        left = dynamics.length(target - position)
        worth = worth + torch.where(left < goal_threshold, goal_reward, -left)
        ahead = bodies + (step + 1) * dynamics.TIME_STEP * drift
        gap = dynamics.length(position.unsqueeze(-2) - ahead.unsqueeze(-3))
        chance = _chance_of_contact(gap, unsure * moves).masked_fill(~near.unsqueeze(-2), 0.0)
        worth = worth - caution * price * chance.sum(-1)
    worth = worth - PER_DISTANCE * dynamics.length(target - position)
    best = worth.argmax(-1, keepdim=True).unsqueeze(-1).expand(*worth.shape[:-1], 1, 2)
    return choices.gather(-2, best).squeeze(-2)


def _chance_of_contact(gap: Tensor, error: Tensor) -> Tensor:
    """Return the chance that a body touches if its distance `gap` is wrong by at most `error`, uniformly."""
    return (0.5 + (dynamics.DIAMETER - gap) / (2 * error.clamp(min=1e-6))).clamp(0.0, 1.0)


def _thrusts(position: Tensor, velocity: Tensor, goal: Tensor) -> Tensor:
    """Return the thrusts to try, `[B, A, 49, 2]`: the drive at the goal first, which wins ties."""
    angle = torch.arange(HEADINGS, device=position.device) * (2 * math.pi / HEADINGS)
    unit = torch.stack((angle.cos(), angle.sin()), -1)
    square = unit / unit.abs().amax(-1, keepdim=True)
    fixed = torch.cat([strength * square for strength in STRENGTHS])
    own = drive(position, velocity, goal).unsqueeze(-2)
    return torch.cat((own, fixed.expand(*position.shape[:-1], -1, -1)), -2)


def _bodies(state: TensorDict) -> tuple[Tensor, Tensor, Tensor]:
    """Return place, velocity `[B, A, M, 2]` and presence `[B, A, M]` of the bodies nearest to each agent."""
    rest = torch.zeros_like(state["obstacle"])
    place = torch.cat((state["position"], state["obstacle"]), -2)
    drift = torch.cat((state["velocity"], state.get("obstacle_velocity", rest)), -2)
    exists = torch.cat((state["active"], state["obstacle_mask"]), -1)
    alone = torch.eye(state["position"].shape[-2], place.shape[-2], dtype=torch.bool, device=place.device)
    distance = dynamics.length(state["position"].unsqueeze(-2) - place.unsqueeze(-3))
    distance = distance.masked_fill(alone | ~exists.unsqueeze(-2), torch.inf)
    found = distance.topk(min(NEAREST, place.shape[-2]), largest=False)
    world = torch.arange(len(place), device=place.device).view(-1, 1, 1)
    return place[world, found.indices], drift[world, found.indices], found.values < REACH
