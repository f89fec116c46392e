"""Steering by hand: potential fields and a short look ahead, from the same noisy view that policies have.

Both try the 25 discrete actions on the boat's own model in still water, as classical methods for this boat
do, and serve as experts to imitate. Symbols: `[*B, A, K]` objects in view, J = 25 actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.marine import colregs, dynamics
from edgewise.envs.marine.dynamics import Motion
from edgewise.envs.marine.env import MarineEnv

Policy = Callable[[TensorDict], TensorDict]
Choose = Callable[[Tensor, Tensor, Tensor, list[Motion]], Tensor]
"""From own view `[*B, A, 7]`, objects `[*B, A, K, 5]`, mask and futures to values of actions `[*B, A, J]`."""

PULL, PUSH = 50.0, 500.0
PUSH_RANGE = 15.0
SPEED_WEIGHT = 0.15
VIRTUAL_OBJECTS, VIRTUAL_SPACING = 4, 5.0
HORIZON = 4
"""Steps that `mpc` looks ahead, two seconds."""
KEEP_CLEAR, KEEP_CLEAR_CORE = 10.0, 9.0
COLLISION_PENALTY, RULE_PENALTY = 50.0, 12.0
HEADING_WEIGHT, EFFORT_WEIGHT = 20.0, 0.0005


def random_steering(env: MarineEnv) -> Policy:
    """Any action, all alike."""
    return env.rand_action


def apf(env: MarineEnv) -> Policy:
    """Artificial potential field: the goal pulls, what is approached and lanes to keep out of push."""
    return _policy(env, _along_the_force, steps=1)


def mpc(env: MarineEnv) -> Policy:
    """Model-predictive: the action whose next two seconds head for the goal and keep clear of all in view."""
    return _policy(env, _least_cost, steps=HORIZON)


def _policy(env: MarineEnv, values: Choose, *, steps: int) -> Policy:
    """The action of highest value, by what each of the 25 would lead to in so many steps."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        own = state["own"]
        futures = _futures(own, steps)
        best = values(own, state["objects"], state["object_mask"], futures).argmax(-1)
        choices = dynamics.choices(own)
        return tensordict.set("action", best if env.config.actions == "discrete" else choices[best])

    return policy


def _futures(own: Tensor, steps: int) -> list[Motion]:
    """Where each action leads in the robot's present body frame, thrust held after the first step.

    Args:
        own: `[*B, A, 7]`.
        steps: how many.

    Returns:
        One `Motion` for each step, of shape `[*B, A, J]`.
    """
    actions = dynamics.choices(own)
    *lead, _ = own.shape
    view = own.unsqueeze(-2).expand(*lead, len(actions), -1)
    moving, at_start = view[..., 2:5], torch.zeros_like(view[..., :2])
    motion = Motion(at_start, at_start[..., 0], moving, moving, view[..., 5:])
    still = {"cores": at_start[..., :0, :], "circulation": at_start[..., :0, 0]}
    futures = [dynamics.move(motion, actions.expand_as(at_start), **still)]
    for _ in range(1, steps):
        futures.append(dynamics.move(futures[-1], torch.zeros_like(at_start), **still))
    return futures


def _aim(direction: Tensor, future: Motion) -> Tensor:
    """How well each future heads along `direction` `[*B, A, J, 2]`: speed along it less the angle to it."""
    unit = torch.nn.functional.normalize(direction, dim=-1)
    along = (future.over_ground[..., :2] * unit).sum(-1)
    angle = torch.atan2(unit[..., 1], unit[..., 0]) - future.heading
    return SPEED_WEIGHT * along - ((angle + math.pi).remainder(2.0 * math.pi) - math.pi).abs()


def _along_the_force(own: Tensor, objects: Tensor, mask: Tensor, futures: list[Motion]) -> Tensor:
    """How well each action turns to where the forces of the potential field point, `[*B, A, J]`."""
    goal, velocity = own[..., :2], own[..., 2:4]
    lanes, in_lane = _virtual(objects, mask, velocity)
    objects, mask = torch.cat((objects, lanes), -2), torch.cat((mask, in_lane), -1)
    to_goal = dynamics.length(goal)[..., None, None]
    distance = dynamics.length(objects).unsqueeze(-1).clamp(min=1e-6)
    toward = objects[..., :2] / distance
    closing = ((velocity.unsqueeze(-2) - objects[..., 2:4]) * toward).sum(-1) > 0.0
    gap = (distance - objects[..., 4:] - dynamics.RADIUS).clamp(min=0.1)
    rise = (gap.reciprocal() - 1.0 / PUSH_RANGE).clamp(min=0.0)
    away = -toward * PUSH * rise * to_goal.square() / gap.square()
    back = -torch.nn.functional.normalize(goal, dim=-1).unsqueeze(-2) * PUSH * rise.square() * to_goal
    pushed = (away + back).masked_fill(~(closing & mask).unsqueeze(-1), 0.0).sum(-2)
    return _aim((PULL * goal + pushed).unsqueeze(-2), futures[-1])


def _least_cost(own: Tensor, objects: Tensor, mask: Tensor, futures: list[Motion]) -> Tensor:
    """Minus the cost of each action over the horizon, `[*B, A, J]`; objects keep their velocities."""
    value = HEADING_WEIGHT * _aim(own[..., None, :2] - futures[-1].position, futures[-1])
    effort = futures[-1].thrust.abs().sum(-1) * dynamics.STEP_SECONDS * len(futures)
    value = value - EFFORT_WEIGHT * effort
    lanes, in_lane = _virtual(objects, mask, own[..., 2:4])
    for number, future in enumerate(futures, start=1):
        gap = _gaps(future, objects, seconds=number * dynamics.STEP_SECONDS)
        steep = (KEEP_CLEAR / gap.clamp(min=KEEP_CLEAR_CORE)) ** 4
        near = steep * (KEEP_CLEAR - gap + COLLISION_PENALTY * (gap < 0.0)).clamp(min=0.0)
        value = value - dynamics.STEP_SECONDS * near.masked_fill(~mask.unsqueeze(-2), 0.0).sum(-1)
        inside = (_gaps(future, lanes, seconds=0.0) < 0.0) & in_lane.unsqueeze(-2)
        value = value - RULE_PENALTY * dynamics.STEP_SECONDS * inside.sum(-1)
    return value


def _gaps(future: Motion, objects: Tensor, *, seconds: float) -> Tensor:
    """How far apart the robot's and the objects' edges are then, `[*B, A, J, K]`."""
    there = (objects[..., :2] + seconds * objects[..., 2:4]).unsqueeze(-3)
    reach = (objects[..., 4] + dynamics.RADIUS).unsqueeze(-2)
    return dynamics.length(there - future.position.unsqueeze(-2)) - reach


def _virtual(objects: Tensor, mask: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
    """Lanes to keep out of, as rows of objects `[*B, A, 4 K, 5]`, and which there are.

    Ahead of a vessel that is to be given way to, so that one passes astern; to starboard of one met head-on,
    so that both keep to starboard.
    """
    crossing, head_on = colregs.zones(objects, velocity)
    moving = colregs.under_way(objects, mask, velocity)
    course = torch.nn.functional.normalize(objects[..., 2:4], dim=-1)
    starboard = torch.stack((-course[..., 1], course[..., 0]), -1)
    side = torch.where(crossing.unsqueeze(-1), course, starboard).unsqueeze(-2)
    reach = VIRTUAL_SPACING * torch.arange(1, VIRTUAL_OBJECTS + 1, device=objects.device).unsqueeze(-1)
    lane = objects.unsqueeze(-2).repeat_interleave(VIRTUAL_OBJECTS, -2)
    lane = torch.cat((lane[..., :2] + reach * side, lane[..., 2:]), -1)
    holds = (moving & (crossing | head_on)).unsqueeze(-1).expand(lane.shape[:-1])
    return lane.flatten(-3, -2), holds.flatten(-2)


BASELINES: Mapping[str, Callable[[MarineEnv], Policy]] = {
    "random": random_steering,
    "apf": apf,
    "mpc": mpc,
}
