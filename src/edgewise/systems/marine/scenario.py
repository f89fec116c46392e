"""Initial states: robots, vortices and obstacles at random positions that keep their minimum distances.

Positions follow sequential rejection sampling with uniform proposals. All objects of a kind share a budget of
tries; a world whose budget runs out has fewer objects. Shapes: n worlds, P tries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from edgewise.systems.marine import field

SIDE = 55.0
TRIES = 500
FIRST_BATCH_OF_TRIES = 100
"""Tries of the first batch; more are drawn only if these are not enough."""
MANY_WORLDS = 8
"""Number of worlds from which drawing in two batches pays, on a CPU. Elsewhere it would synchronise."""
ROBOT_GAP = 10.0
CORE_CLEARANCE = field.CORE_RADIUS + ROBOT_GAP
SAME_TURN_GAP = 3.0
OPPOSITE_TURN_GAP = 1.625
OPPOSITE_TURN_UNCHECKED = 1.0
"""The reference accepts vortices of opposite turn closer than this, because of a sign error."""
OBSTACLE_RADIUS = 1.0
OBSTACLE_CLEARANCE = OBSTACLE_RADIUS + ROBOT_GAP


class Wanted(NamedTuple):
    """What each of n worlds should have, each `[n]`: three int64 counts and a distance in metres."""

    robots: Tensor
    obstacles: Tensor
    cores: Tensor
    start_goal_distance: Tensor


class Capacity(NamedTuple):
    """Maximum number of robots, obstacles and vortices of a world."""

    robots: int
    obstacles: int
    cores: int


class Placed(NamedTuple):
    """Accepted tries: `values` `[n, S, D]` of S slots, and the `mask` `[n, S]` of filled slots."""

    values: Tensor
    mask: Tensor


def sample_worlds(
    wanted: Wanted, room: Capacity, *, generator: torch.Generator, parity: bool = False
) -> dict[str, Tensor]:
    """Sample one world for each row of `wanted`.

    - Starts and goals lie in [2, 53]², at least the requested distance apart, and more than 10 m from other
      starts and other goals. If no try of a world is far enough, its farthest one is taken.
    - Vortices lie at least 10.5 m from starts and goals, 3 m from vortices of the same turn and 1.625 m from
      the others.
    - Obstacles lie in [5, 50]², at least 11 m from starts and goals, over 1.5 m from vortices and over 2 m
      from each other.

    Args:
        wanted: counts, at most those of `room`.
        room: A, O and C.
        generator: source of randomness.
        parity: accept vortices of opposite turn less than 1 m apart, as the reference does.

    Returns:
        `position`, `goal` `[n, A, 2]`, `heading`, `active` `[n, A]`, `obstacle` `[n, O, 2]`,
        `obstacle_radius`, `obstacle_mask` `[n, O]`, `core` `[n, C, 2]`, `circulation` `[n, C]`, and
        `shortfall` `[n, 3]` int64, the numbers of robots, obstacles and vortices that could not be placed.
    """
    count, device = len(wanted.robots), wanted.robots.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, generator=generator, device=device)

    robots = _place_robots(wanted, room.robots, uniform=uniform)
    start, goal = robots.values.split(2, -1)
    ends, taken = torch.cat((start, goal), 1), robots.mask.repeat(1, 2)
    cores = _place_cores(wanted.cores, room.cores, ends=Placed(ends, taken), uniform=uniform, parity=parity)
    obstacles = _place_obstacles(
        wanted.obstacles, room.obstacles, ends=Placed(ends, taken), cores=cores, uniform=uniform
    )
    missing = [
        number - placed.mask.sum(-1)
        for number, placed in zip(wanted[:3], (robots, obstacles, cores), strict=True)
    ]
    return {
        "position": start.contiguous(),
        "goal": goal.contiguous(),
        "heading": 2.0 * math.pi * uniform(room.robots),
        "active": robots.mask,
        "obstacle": obstacles.values,
        "obstacle_radius": torch.full_like(obstacles.values[..., 0], OBSTACLE_RADIUS),
        "obstacle_mask": obstacles.mask,
        "core": cores.values[..., :2].contiguous(),
        "circulation": field.CIRCULATION * cores.values[..., 2],
        "shortfall": torch.stack(missing, -1),
    }


Uniform = Callable[..., Tensor]
"""Samples uniform numbers in [0, 1) of shape `[n, *shape]`."""


def _place_robots(wanted: Wanted, room: int, *, uniform: Uniform) -> Placed:
    """Place starts and goals, `[n, A, 4]`."""
    least = wanted.start_goal_distance.unsqueeze(-1)

    def draw(tries: int) -> Tensor:
        return 2.0 + (SIDE - 4.0) * uniform(4, tries)

    def free(places: Tensor) -> Tensor:
        x, y, goal_x, goal_y = places.unbind(1)
        apart = torch.hypot(goal_x - x, goal_y - y)
        far = apart >= least
        if places.shape[-1] < TRIES:
            return far
        return far | (apart == apart.amax(-1, keepdim=True)) & ~far.any(-1, keepdim=True)

    def clash(places: Tensor, chosen: Tensor) -> Tensor:
        square = (places - chosen).square_()
        least = ROBOT_GAP**2
        return (square[:, 0] + square[:, 1] <= least) | (square[:, 2] + square[:, 3] <= least)

    return _place(draw, free, clash, wanted=wanted.robots, room=room)


def _place_cores(number: Tensor, room: int, *, ends: Placed, uniform: Uniform, parity: bool) -> Placed:
    """Place vortices: centre and turn (1 clockwise, -1 otherwise), `[n, C, 3]`; zero in empty slots."""

    def draw(tries: int) -> Tensor:
        places = uniform(3, tries)
        return torch.cat((SIDE * places[:, :2], (places[:, 2:] < 0.5) * 2.0 - 1.0), 1)

    def free(places: Tensor) -> Tensor:
        inside = (places[:, :2] - SIDE / 2).abs().amax(1) <= SIDE / 2 - field.CORE_RADIUS
        return inside & (_clearance(places, ends) >= CORE_CLEARANCE)

    def clash(places: Tensor, chosen: Tensor) -> Tensor:
        apart, same = _distance_to(places, chosen), places[:, 2] == chosen[:, 2]
        opposite = apart < OPPOSITE_TURN_GAP
        if parity:
            opposite = opposite & (apart >= OPPOSITE_TURN_UNCHECKED)
        return torch.where(same, apart < SAME_TURN_GAP, opposite)

    placed = _place(draw, free, clash, wanted=number, room=room)
    return Placed(placed.values.masked_fill(~placed.mask.unsqueeze(-1), 0.0), placed.mask)


def _place_obstacles(number: Tensor, room: int, *, ends: Placed, cores: Placed, uniform: Uniform) -> Placed:
    """Place obstacles, `[n, O, 2]`."""

    def draw(tries: int) -> Tensor:
        return 5.0 + (SIDE - 10.0) * uniform(2, tries)

    def free(places: Tensor) -> Tensor:
        off_cores = _clearance(places, cores) > OBSTACLE_RADIUS + field.CORE_RADIUS
        return (_clearance(places, ends) >= OBSTACLE_CLEARANCE) & off_cores

    def clash(places: Tensor, chosen: Tensor) -> Tensor:
        return _distance_to(places, chosen) <= 2.0 * OBSTACLE_RADIUS

    return _place(draw, free, clash, wanted=number, room=room)


def _place(
    draw: Callable[[int], Tensor],
    free: Callable[[Tensor], Tensor],
    clash: Callable[[Tensor, Tensor], Tensor],
    *,
    wanted: Tensor,
    room: int,
) -> Placed:
    """Accept the first tries that are free and do not clash with an earlier accepted one.

    Args:
        draw: samples the given number of tries, `[n, D, P]`.
        free: returns which tries `[n, D, P]` are compatible with objects of other kinds, `[n, P]` bool.
        clash: returns which tries are too close to an accepted one `[n, D, 1]`, `[n, P]` bool.
        wanted: number of objects per world, `[n]`.
        room: S, the maximum of `wanted`.
    """
    places = draw(0)
    if not room:
        return Placed(places.mT, torch.zeros_like(places[:, 0], dtype=torch.bool))
    may_ask = places.device.type == "cpu" and len(places) >= MANY_WORLDS
    for tries in (FIRST_BATCH_OF_TRIES, TRIES - FIRST_BATCH_OF_TRIES) if may_ask else (TRIES,):
        places = torch.cat((places, draw(tries)), -1)
        placed = _first_fits(places, free(places), clash, wanted=wanted, room=room)
        if may_ask and not (placed.mask.sum(-1) < wanted).any():
            break
    return placed


def _first_fits(
    places: Tensor, free: Tensor, clash: Callable[[Tensor, Tensor], Tensor], *, wanted: Tensor, room: int
) -> Placed:
    """Fill one slot after another with the first remaining try; arguments as in `_place`."""
    values, mask = [], []
    for slot in range(room):
        first = free.byte().argmax(-1, keepdim=True)
        found = free.gather(1, first).squeeze(-1) & (slot < wanted)
        chosen = places.gather(-1, first.unsqueeze(1).expand(-1, places.shape[1], 1))
        free = free & ~(clash(places, chosen) & found.unsqueeze(-1))
        values.append(chosen.squeeze(-1))
        mask.append(found)
    return Placed(torch.stack(values, 1), torch.stack(mask, 1))


def _distance_to(places: Tensor, chosen: Tensor) -> Tensor:
    """Compute the distance of each place `[n, 2+, P]` to the chosen one `[n, 2+, 1]`, `[n, P]`."""
    north, east = (places[:, :2] - chosen[:, :2]).unbind(1)
    return torch.addcmul(north * north, east, east).sqrt_()


def _clearance(places: Tensor, others: Placed) -> Tensor:
    """Compute the distance of each place `[n, 2+, P]` to the nearest existing one of `others`, `[n, P]`."""
    x, y = others.values[..., :2].masked_fill(~others.mask.unsqueeze(-1), -1e6).unsqueeze(-2).unbind(-1)
    north, east = places[:, :1] - x, places[:, 1:2] - y
    square = torch.addcmul(north * north, east, east)
    return torch.nn.functional.pad(square, (0, 0, 0, 1), value=torch.inf).amin(1).sqrt_()
