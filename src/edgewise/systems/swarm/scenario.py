"""Where swarms begin: obstacles anywhere, agents and goals clear of obstacles and of their like."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.swarm import dynamics, tasks

TRIES = 32
"""Places drawn for each body before the best of them is taken though it is too close."""
INNER = 0.8
"""Obstacles and goals keep to this part of the square."""


def draw_swarms(
    num_agents: Tensor,
    num_obstacles: Tensor,
    *,
    half_side: Tensor,
    agents: int,
    obstacles: int,
    generator: torch.Generator,
    task: str = "target",
) -> dict[str, Tensor]:
    """One random world for each entry of `num_agents`.

    Agents and goals are placed one after another, each at the first of `TRIES` uniform places that is at
    least a diameter away from every obstacle and every one placed before it; goals ignore agents. Where no
    try fits, the roomiest is taken, and `crowded` counts it. A circle or a line is placed as a whole, clear
    of obstacles.

    Args:
        num_agents: `[B]` int64, at most `agents`.
        num_obstacles: `[B]` int64, at most `obstacles`.
        half_side: `[B]`, half the side of each square.
        agents: A, room for agents.
        obstacles: O, room for obstacles.
        generator: draws everything.
        task: whose goals or landmarks to draw.

    Returns:
        `position` `[B, A, 2]`, `obstacle` `[B, O, 2]`, `active` `[B, A]`, `obstacle_mask` `[B, O]`, `crowded`
        `[B]`, and `goal` `[B, A, 2]`, or `landmark` `[B, L, 2]` where goals belong to nobody.
    """
    count, device = len(num_agents), num_agents.device
    active = torch.arange(agents, device=device) < num_agents.unsqueeze(-1)
    obstacle_mask = torch.arange(obstacles, device=device) < num_obstacles.unsqueeze(-1)
    side = half_side.view(-1, 1, 1)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, 2, generator=generator, device=device) * 2.0 - 1.0

    obstacle = uniform(obstacles) * INNER * side
    places = uniform(agents, TRIES) * side.unsqueeze(-1)
    position, crowded = _place(places, active, obstacle=obstacle, obstacle_mask=obstacle_mask)
    if task in ("target", "coverage"):
        goal_places = uniform(agents, TRIES) * INNER * side.unsqueeze(-1)
        goal, goals_crowded = _place(goal_places, active, obstacle=obstacle, obstacle_mask=obstacle_mask)
    else:
        shape = _circles if task == "formation" else _lines
        marks, room = shape(uniform(TRIES, 2), num_agents, half_side, obstacle, obstacle_mask)
        goal, goals_crowded = _roomy(marks, room)
    return {
        "position": position,
        "goal" if task == "target" else "landmark": goal,
        "obstacle": obstacle,
        "active": active,
        "obstacle_mask": obstacle_mask,
        "crowded": crowded + goals_crowded,
    }


def _place(
    places: Tensor, exists: Tensor, *, obstacle: Tensor, obstacle_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """One of the places `[B, A, K, 2]` for each body, `[B, A, 2]`, and how many are too close `[B]`."""
    clearance = _clearance(places, obstacle.unsqueeze(1), obstacle_mask.unsqueeze(1))
    taken = places[:, :0, 0]
    crowded = torch.zeros(len(places), dtype=torch.int64, device=places.device)
    for body in range(places.shape[1]):
        room = torch.minimum(clearance[:, body], _clearance(places[:, body], taken, exists[:, :body]))
        fits = room >= dynamics.DIAMETER
        found = fits.any(-1)
        choice = torch.where(found, fits.int().argmax(-1), room.argmax(-1))
        chosen = places[:, body].gather(1, choice.view(-1, 1, 1).expand(-1, 1, 2))
        taken = torch.cat((taken, chosen), 1)
        crowded += ~found & exists[:, body]
    return taken, crowded


def _circles(
    draw: Tensor, num_agents: Tensor, half_side: Tensor, obstacle: Tensor, exists: Tensor
) -> tuple[Tensor, Tensor]:
    """Centres of circles `[B, K, 1, 2]` in the inner half of the square, and how clear they are, `[B, K]`.

    `draw` `[B, K, 2, 2]` is uniform in [-1, 1].
    """
    centre = 0.5 * half_side.view(-1, 1, 1) * draw[:, :, 0]
    apart = dynamics.length(centre.unsqueeze(2) - obstacle.unsqueeze(1))
    gap = (apart - tasks.circle_radius(num_agents).view(-1, 1, 1)).abs()
    return centre.unsqueeze(2), _least(gap, exists.unsqueeze(1))


def _lines(
    draw: Tensor, num_agents: Tensor, half_side: Tensor, obstacle: Tensor, exists: Tensor
) -> tuple[Tensor, Tensor]:
    """Ends of lines `[B, K, 2, 2]` of any direction about the square's middle, and how clear they are."""
    centre = 0.25 * half_side.view(-1, 1, 1) * draw[:, :, 0]
    angle = torch.pi * draw[:, :, 1, 0]
    along = torch.stack((angle.cos(), angle.sin()), -1)
    half = 0.5 * tasks.line_length(num_agents, half_side).view(-1, 1, 1)
    offset = obstacle.unsqueeze(1) - centre.unsqueeze(2)
    share = (offset * along.unsqueeze(2)).sum(-1).clamp(-half, half)
    gap = dynamics.length(offset - share.unsqueeze(-1) * along.unsqueeze(2))
    return torch.stack((centre - half * along, centre + half * along), 2), _least(gap, exists.unsqueeze(1))


def _roomy(marks: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
    """The first of the tries `[B, K, L, 2]` with a diameter of room, or the roomiest, and whether it is."""
    fits = room >= dynamics.DIAMETER
    found = fits.any(-1)
    choice = torch.where(found, fits.int().argmax(-1), room.argmax(-1))
    chosen = marks.gather(1, choice.view(-1, 1, 1, 1).expand(-1, 1, *marks.shape[2:])).squeeze(1)
    return chosen, (~found).long()


def _least(distance: Tensor, exists: Tensor) -> Tensor:
    """The least over the last dimension of what exists; infinite where nothing does."""
    distance = distance.masked_fill(~exists, torch.inf)
    return torch.nn.functional.pad(distance, (0, 1), value=torch.inf).amin(-1)


def _clearance(places: Tensor, others: Tensor, exists: Tensor) -> Tensor:
    """Distance from each place `[..., K, 2]` to the nearest existing one of `others` `[..., M, 2]`."""
    offset = places.unsqueeze(-2) - others.unsqueeze(-3)
    return _least(dynamics.length(offset), exists.unsqueeze(-2))
