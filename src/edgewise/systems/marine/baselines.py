"""Steering by hand, from the same noisy view that policies have: potential fields and velocity obstacles.

Both say where to head and how fast; one law turns that into thrust. They serve as experts to imitate.
Symbols: `[*B, A, K]` objects in view, J velocities to choose from. Everything is in the robot's body frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn.functional import normalize

from edgewise.graphs.policy import Policy
from edgewise.systems.marine import colregs, dynamics
from edgewise.systems.marine.env import MarineEnv

Course = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From own view `[*B, A, 7]`, objects `[*B, A, K, 5]` and mask to the velocity to take up, `[*B, A, 2]`."""

TOP_SPEED = 3.0
TOP_YAW_RATE = 0.6
APPROACH = 0.5
"""Metres per second for each metre to the goal, so that a boat can turn to it."""
SLIDE = 0.6
"""How far beyond the velocity it wants a boat heads, in parts of what it lacks."""
PULL, PUSH, PUSH_RANGE = 50.0, 500.0, 15.0
LANE_OBJECTS, LANE_SPACING = 4, 5.0
HEADINGS, SPEEDS = 24, (0.75, 1.5, 2.25, 3.0)
SEEN_PART = 0.8
"""The part of an object's radius that is seen, on average."""
CLEARANCE = 2.0
"""Metres to keep from the edges of others."""
SHARE = 0.5
"""How much of the evasion a moving vessel is trusted to do, beside one's own."""
LAG = 1.0
"""Seconds until a boat has taken up another velocity."""
HORIZON = 10.0
"""Seconds within which a meeting matters."""
MEETING_WEIGHT, RULE_WEIGHT = 8.0, 1.0


def random_steering(env: MarineEnv) -> Policy:
    """Any action, all alike."""
    return env.rand_action


def apf(env: MarineEnv) -> Policy:
    """Artificial potential field: the goal pulls, what is approached and lanes to keep out of push."""
    return _policy(env, _along_the_force)


def rvo(env: MarineEnv) -> Policy:
    """Reciprocal velocity obstacles: the velocity nearest to the goal's that meets nothing in view soon."""
    return _policy(env, _clear_velocity)


def _policy(env: MarineEnv, course: Course) -> Policy:
    """Take up the velocity that `course` gives."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        action = steer(state["own"], course(state["own"], state["objects"], state["object_mask"]))
        if env.config.actions == "discrete":
            action = nearest_choice(action)
        return tensordict.set("action", action)

    return policy


def steer(own: Tensor, wanted: Tensor) -> Tensor:
    """The continuous action `[*B, A, 2]` that brings robots to velocities `wanted` `[*B, A, 2]`.

    Thrust for the yaw rate and the speed to take up, with what drag will cost and what is missing yet. Boats
    slide: they head beyond the velocity they want, away from the one they have, and slow down until they do.
    """
    speed, yaw_rate, thrust = own[..., 2], own[..., 4], own[..., 5:]
    beyond = wanted + SLIDE * (wanted - own[..., 2:4])
    error = torch.atan2(beyond[..., 1], beyond[..., 0])
    turn = (1.2 * error).clamp(-TOP_YAW_RATE, TOP_YAW_RATE)
    ahead = dynamics.length(wanted) * error.cos().clamp(min=0.0)
    drag = (dynamics.LINEAR_YAW_DRAG + dynamics.SQUARE_YAW_DRAG * turn.abs()) * turn
    difference = (drag + 1.5 * dynamics.YAW_INERTIA * (turn - yaw_rate)) / dynamics.THRUSTER_ARM
    resistance = (dynamics.LINEAR_DRAG + dynamics.SQUARE_DRAG * ahead) * ahead
    total = resistance + dynamics.SURGE_INERTIA * (ahead - speed)
    target = 0.5 * torch.stack((total + difference, total - difference), -1)
    change = target.clamp(dynamics.LEAST_THRUST, dynamics.MOST_THRUST) - thrust
    return (change / (dynamics.THRUST_RATE * dynamics.STEP_SECONDS)).clamp(-1.0, 1.0)


def nearest_choice(action: Tensor) -> Tensor:
    """The discrete action `[*B, A]` nearest to a continuous one `[*B, A, 2]`."""
    return (action.unsqueeze(-2) - dynamics.choices(action)).square().sum(-1).argmin(-1)


def _to_goal(own: Tensor) -> Tensor:
    """The velocity that a robot alone would take up, `[*B, A, 2]`."""
    goal = own[..., :2]
    speed = (0.5 + APPROACH * dynamics.length(goal)).clamp(max=TOP_SPEED)
    return speed.unsqueeze(-1) * normalize(goal, dim=-1)


def _along_the_force(own: Tensor, objects: Tensor, mask: Tensor) -> Tensor:
    """At the goal's speed to where the forces of the potential field point.

    The goal pulls with 50 N per metre; an object at a gap of d < 15 m that comes nearer pushes away with
    `500 (1/d − 1/15) D²/d²` and back from the goal with `500 (1/d − 1/15)² D`, D the way to the goal.
    """
    goal, velocity = own[..., :2], own[..., 2:4]
    lanes, in_lane = _lanes(objects, mask, velocity)
    objects, mask = torch.cat((objects, lanes), -2), torch.cat((mask, in_lane), -1)
    to_goal = dynamics.length(goal)[..., None, None]
    distance = dynamics.length(objects).unsqueeze(-1).clamp(min=1e-6)
    toward = objects[..., :2] / distance
    closing = ((velocity.unsqueeze(-2) - objects[..., 2:4]) * toward).sum(-1) > 0.0
    gap = (distance - objects[..., 4:] - dynamics.RADIUS).clamp(min=0.1)
    rise = (gap.reciprocal() - 1.0 / PUSH_RANGE).clamp(min=0.0)
    away = -toward * PUSH * rise * to_goal.square() / gap.square()
    back = -normalize(goal, dim=-1).unsqueeze(-2) * PUSH * rise.square() * to_goal
    pushed = (away + back).masked_fill(~(closing & mask).unsqueeze(-1), 0.0).sum(-2)
    return dynamics.length(_to_goal(own)).unsqueeze(-1) * normalize(PULL * goal + pushed, dim=-1)


def _lanes(objects: Tensor, mask: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
    """Lanes to keep out of by the rules, as rows of objects `[*B, A, 4 K, 5]`, and which there are.

    Ahead of a vessel that is to be given way to, so that one passes astern; to starboard of one met head-on,
    so that both keep to starboard.
    """
    met = colregs.encounters(objects, velocity)
    crossing, head_on = colregs.zones(met)
    along = normalize(objects[..., 2:4], dim=-1)
    starboard = torch.stack((-along[..., 1], along[..., 0]), -1)
    side = torch.where(crossing.unsqueeze(-1), along, starboard).unsqueeze(-2)
    reach = LANE_SPACING * torch.arange(1, LANE_OBJECTS + 1, device=objects.device).unsqueeze(-1)
    lane = objects.unsqueeze(-2).expand(*objects.shape[:-1], LANE_OBJECTS, -1)
    lane = torch.cat((lane[..., :2] + reach * side, lane[..., 2:]), -1)
    holds = (colregs.under_way(met) & mask & (crossing | head_on)).unsqueeze(-1)
    return lane.flatten(-3, -2), holds.expand(lane.shape[:-1]).flatten(-2)


def _clear_velocity(own: Tensor, objects: Tensor, mask: Tensor) -> Tensor:
    """Of many velocities the one with the least detour and the latest meeting, `[*B, A, 2]`."""
    wanted = _to_goal(own)
    grid = torch.cat((wanted.unsqueeze(-2), _velocities(own).expand(*own.shape[:-1], -1, 2)), -2)
    detour = dynamics.length(grid - wanted.unsqueeze(-2))
    meeting = _meeting(grid, own[..., 2:4], objects).masked_fill(~mask.unsqueeze(-2), torch.inf)
    danger = (MEETING_WEIGHT / meeting.clamp(min=0.5)).masked_fill(meeting > HORIZON, 0.0).amax(-1)
    cost = detour + danger + RULE_WEIGHT * _to_port(grid, own[..., 2:4], objects, mask)
    best = cost.argmin(-1)[..., None, None].expand(*cost.shape[:-1], 1, 2)
    return grid.gather(-2, best).squeeze(-2)


def _velocities(like: Tensor) -> Tensor:
    """A fan of velocities all around, `[J, 2]`."""
    angle = torch.arange(HEADINGS, dtype=like.dtype, device=like.device) * (2.0 * math.pi / HEADINGS)
    around = torch.stack((angle.cos(), angle.sin()), -1)
    return torch.cat([speed * around for speed in SPEEDS])


def _meeting(grid: Tensor, velocity: Tensor, objects: Tensor) -> Tensor:
    """Seconds until velocities `[*B, A, J, 2]` lead to a touch, `[*B, A, J, K]`; infinite where they do not.

    Robots go on as they are for `LAG` seconds; moving vessels are trusted to do their share of the evasion.
    """
    moving = (dynamics.length(objects[..., 2:4]) >= colregs.LEAST_SPEED)[..., None, :, None]
    other, own = objects[..., None, :, 2:4], velocity[..., None, None, :]
    candidate = grid.unsqueeze(-2)
    relative = torch.where(moving, candidate + SHARE * (candidate - own), candidate) - other
    place = objects[..., None, :, :2] - LAG * (own - other)
    reach = (objects[..., 4] / SEEN_PART + dynamics.RADIUS + CLEARANCE).unsqueeze(-2)
    closing = (relative * place).sum(-1)
    speed = relative.square().sum(-1).clamp(min=1e-6)
    beyond = place.square().sum(-1) - reach.square()
    root = closing.square() - speed * beyond
    seconds = (closing - root.clamp(min=0.0).sqrt()) / speed
    seconds = torch.where(beyond <= 0.0, 0.0, seconds)
    return seconds.masked_fill((closing <= 0.0) | (root < 0.0), torch.inf)


def _to_port(grid: Tensor, velocity: Tensor, objects: Tensor, mask: Tensor) -> Tensor:
    """How many vessels that are to be given way to a velocity passes on the wrong side, `[*B, A, J]`."""
    met = colregs.encounters(objects, velocity)
    crossing, head_on = colregs.zones(met)
    gives_way = (colregs.under_way(met) & mask & (crossing | head_on)).unsqueeze(-2)
    relative = grid.unsqueeze(-2) - objects[..., None, :, 2:4]
    x, y = objects[..., None, :, 0], objects[..., None, :, 1]
    wrong = x * relative[..., 1] - y * relative[..., 0] < 0.0
    return (gives_way & wrong).sum(-1)


BASELINES: Mapping[str, Callable[[MarineEnv], Policy]] = {
    "random": random_steering,
    "apf": apf,
    "rvo": rvo,
}
