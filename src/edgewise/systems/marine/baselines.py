"""Hand-written steering on the policies' noisy observations: potential fields and velocity obstacles.

Both choose a velocity; one controller turns it into thrust. They can serve as experts.
Shapes: `[*B, A, K]` perceived objects, J candidate velocities. Everything is in the robot's body frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn.functional import normalize

from edgewise.envs.policy import Policy
from edgewise.systems.marine import colregs, dynamics
from edgewise.systems.marine.env import MarineEnv

Course = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Maps own features `[*B, A, 7]`, objects `[*B, A, K, 5]` and their mask to a velocity `[*B, A, 2]`."""

TOP_SPEED = 3.0
TOP_YAW_RATE = 0.6
APPROACH = 0.5
"""Speed in m/s per metre to the goal; boats slow down near it so that they can turn."""
SLIDE = 0.6
"""Overshoot of the commanded velocity, as a fraction of the velocity error."""
PULL, PUSH, PUSH_RANGE = 50.0, 500.0, 15.0
LANE_OBJECTS, LANE_SPACING = 4, 5.0
HEADINGS, SPEEDS = 24, (0.75, 1.5, 2.25, 3.0)
MEAN_SEEN_RADIUS = 0.8
"""Mean factor of a perceived radius."""
CLEARANCE, WIDE_CLEARANCE = 2.0, 4.0
"""Distance in metres to keep from the edges of other objects: of `rvo`, and of `wide_rvo`."""
SHARE = 0.5
"""Share of the evasion that another moving vessel is assumed to take."""
LAG = 1.0
"""Seconds that a boat needs to change its velocity."""
HORIZON = 10.0
"""Seconds within which a collision counts."""
COLLISION_WEIGHT, RULE_WEIGHT = 8.0, 1.0


def random_steering(env: MarineEnv) -> Policy:
    """Take uniformly random actions."""
    return env.rand_action


def apf(env: MarineEnv) -> Policy:
    """Follow an artificial potential field: goals attract, approached objects and forbidden lanes repel."""
    return _policy(env, _force_velocity)


def rvo(env: MarineEnv) -> Policy:
    """Use reciprocal velocity obstacles: the velocity closest to the goal's that avoids collisions."""
    return _policy(env, _safest_velocity)


def wide_rvo(env: MarineEnv) -> Policy:
    """Use reciprocal velocity obstacles with twice the clearance, which noisy observations need."""
    return _policy(env, partial(_safest_velocity, clearance=WIDE_CLEARANCE))


def _policy(env: MarineEnv, course: Course) -> Policy:
    """Build a policy that steers to the velocity given by `course`."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        action = steer(state["own"], course(state["own"], state["objects"], state["object_mask"]))
        if env.config.actions == "discrete":
            action = nearest_choice(action)
        return tensordict.set("action", action)

    return policy


def steer(own: Tensor, wanted: Tensor) -> Tensor:
    """Compute the continuous action `[*B, A, 2]` that brings robots to velocities `wanted` `[*B, A, 2]`.

    The thrust compensates drag and corrects the errors of yaw rate and speed. Boats slide sideways, so the
    controller overshoots the wanted velocity and slows down until the heading fits.
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
    """Return the discrete action `[*B, A]` closest to a continuous one `[*B, A, 2]`."""
    return (action.unsqueeze(-2) - dynamics.choices(action)).square().sum(-1).argmin(-1)


def _goal_velocity(own: Tensor) -> Tensor:
    """Compute the velocity towards the goal without regard to others, `[*B, A, 2]`."""
    goal = own[..., :2]
    speed = (0.5 + APPROACH * dynamics.length(goal)).clamp(max=TOP_SPEED)
    return speed.unsqueeze(-1) * normalize(goal, dim=-1)


def _force_velocity(own: Tensor, objects: Tensor, mask: Tensor) -> Tensor:
    """Compute the velocity along the force of the potential field, with the speed of `_goal_velocity`.

    The goal attracts with 50 N per metre. An approached object at a gap of d < 15 m repels with
    `500 (1/d − 1/15) D²/d²` and pushes back from the goal with `500 (1/d − 1/15)² D`, where D is the distance
    to the goal.
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
    return dynamics.length(_goal_velocity(own)).unsqueeze(-1) * normalize(PULL * goal + pushed, dim=-1)


def _lanes(objects: Tensor, mask: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
    """Build virtual objects `[*B, A, 4 K, 5]` on the lanes that the rules forbid, and their mask.

    Lanes lie ahead of a crossing vessel, so that the robot passes astern, and to starboard of a vessel that
    is met head-on, so that both pass to starboard.
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


def _safest_velocity(own: Tensor, objects: Tensor, mask: Tensor, *, clearance: float = CLEARANCE) -> Tensor:
    """Choose the velocity with the lowest cost of detour, collision and rule violation, `[*B, A, 2]`."""
    wanted = _goal_velocity(own)
    grid = torch.cat((wanted.unsqueeze(-2), _velocities(own).expand(*own.shape[:-1], -1, 2)), -2)
    detour = dynamics.length(grid - wanted.unsqueeze(-2))
    meeting = _time_to_collision(grid, own[..., 2:4], objects, clearance=clearance)
    meeting = meeting.masked_fill(~mask.unsqueeze(-2), torch.inf)
    danger = (COLLISION_WEIGHT / meeting.clamp(min=0.5)).masked_fill(meeting > HORIZON, 0.0).amax(-1)
    cost = detour + danger + RULE_WEIGHT * _wrong_side_passes(grid, own[..., 2:4], objects, mask)
    best = cost.argmin(-1)[..., None, None].expand(*cost.shape[:-1], 1, 2)
    return grid.gather(-2, best).squeeze(-2)


def _velocities(like: Tensor) -> Tensor:
    """Return candidate velocities in all directions, `[J, 2]`."""
    angle = torch.arange(HEADINGS, dtype=like.dtype, device=like.device) * (2.0 * math.pi / HEADINGS)
    around = torch.stack((angle.cos(), angle.sin()), -1)
    return torch.cat([speed * around for speed in SPEEDS])


def _time_to_collision(
    grid: Tensor, velocity: Tensor, objects: Tensor, *, clearance: float = CLEARANCE
) -> Tensor:
    """Compute the seconds until velocities `[*B, A, J, 2]` lead to a collision, `[*B, A, J, K]`, or infinity.

    Robots keep their velocity for `LAG` seconds; moving vessels are assumed to take their share of the
    evasion.
    """
    moving = (dynamics.length(objects[..., 2:4]) >= colregs.LEAST_SPEED)[..., None, :, None]
    other, own = objects[..., None, :, 2:4], velocity[..., None, None, :]
    candidate = grid.unsqueeze(-2)
    relative = torch.where(moving, candidate + SHARE * (candidate - own), candidate) - other
    place = objects[..., None, :, :2] - LAG * (own - other)
    reach = (objects[..., 4] / MEAN_SEEN_RADIUS + dynamics.RADIUS + clearance).unsqueeze(-2)
    closing = (relative * place).sum(-1)
    speed = relative.square().sum(-1).clamp(min=1e-6)
    beyond = place.square().sum(-1) - reach.square()
    root = closing.square() - speed * beyond
    seconds = (closing - root.clamp(min=0.0).sqrt()) / speed
    seconds = torch.where(beyond <= 0.0, 0.0, seconds)
    return seconds.masked_fill((closing <= 0.0) | (root < 0.0), torch.inf)


def _wrong_side_passes(grid: Tensor, velocity: Tensor, objects: Tensor, mask: Tensor) -> Tensor:
    """Count the vessels with right of way that a velocity passes on the wrong side, `[*B, A, J]`."""
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
    "wide_rvo": wide_rvo,
}
