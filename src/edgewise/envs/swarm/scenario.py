"""Where swarms begin: obstacles anywhere, agents and goals clear of obstacles and of their like."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.envs.swarm import dynamics

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
) -> dict[str, Tensor]:
    """One random world for each entry of `num_agents`.

    Agents and goals are placed one after another, each at the first of `TRIES` uniform places that is at
    least a diameter away from every obstacle and every one placed before it; goals ignore agents. Where no
    try fits, the roomiest is taken, and `crowded` counts it.

    Args:
        num_agents: `[B]` int64, at most `agents`.
        num_obstacles: `[B]` int64, at most `obstacles`.
        half_side: `[B]`, half the side of each square.
        agents: A, room for agents.
        obstacles: O, room for obstacles.
        generator: draws everything.

    Returns:
        `position`, `goal` `[B, A, 2]`, `obstacle` `[B, O, 2]`, `active` `[B, A]`, `obstacle_mask` `[B, O]`
        and `crowded` `[B]`.
    """
    count, device = len(num_agents), num_agents.device
    active = torch.arange(agents, device=device) < num_agents.unsqueeze(-1)
    obstacle_mask = torch.arange(obstacles, device=device) < num_obstacles.unsqueeze(-1)
    side = half_side.view(-1, 1, 1)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, 2, generator=generator, device=device) * 2.0 - 1.0

    obstacle = uniform(obstacles) * INNER * side
    places = uniform(agents, TRIES) * side.unsqueeze(-1)
    goal_places = uniform(agents, TRIES) * INNER * side.unsqueeze(-1)
    position, crowded = _place(places, active, obstacle=obstacle, obstacle_mask=obstacle_mask)
    goal, goals_crowded = _place(goal_places, active, obstacle=obstacle, obstacle_mask=obstacle_mask)
    return {
        "position": position,
        "goal": goal,
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


def _clearance(places: Tensor, others: Tensor, exists: Tensor) -> Tensor:
    """Distance from each place `[..., K, 2]` to the nearest existing one of `others` `[..., M, 2]`."""
    offset = places.unsqueeze(-2) - others.unsqueeze(-3)
    distance = dynamics.length(offset).masked_fill(~exists.unsqueeze(-2), torch.inf)
    return torch.nn.functional.pad(distance, (0, 1), value=torch.inf).amin(-1)
