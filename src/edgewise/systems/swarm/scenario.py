"""Initial states: obstacles anywhere, agents and goals clear of obstacles and of each other."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.swarm import dynamics, tasks

TRIES = 32
"""Candidate positions per body; if none fits, the one with the largest clearance is taken."""
INNER = 0.8
"""Obstacles and goals lie within this fraction of the square."""


def sample_swarms(
    num_agents: Tensor,
    num_obstacles: Tensor,
    *,
    half_side: Tensor,
    agents: int,
    obstacles: int,
    generator: torch.Generator,
    task: str = "target",
    spacing: float = dynamics.DIAMETER,
    inner: float = INNER,
) -> dict[str, Tensor]:
    """Sample one world for each entry of `num_agents`.

    Agents and goals are placed one after another, each at the first of `TRIES` uniform positions that is at
    least `spacing` away from every obstacle and every body of its kind placed before. Goals ignore agents.
    If no candidate fits, the one with the largest clearance is taken and counted in `crowded`. A circle or a
    line is placed as a whole, clear of obstacles.

    Args:
        num_agents: `[B]` int64, at most `agents`.
        num_obstacles: `[B]` int64, at most `obstacles`.
        half_side: `[B]`, half the side of each square.
        agents: A, maximum number of agents.
        obstacles: O, maximum number of obstacles.
        generator: source of randomness.
        task: task that decides which goals or landmarks to sample.
        spacing: least distance between two agents, two goals, and to obstacles.
        inner: fraction of the square in which obstacles and goals lie.

    Returns:
        `position` `[B, A, 2]`, `obstacle` `[B, O, 2]`, `active` `[B, A]`, `obstacle_mask` `[B, O]`, `crowded`
        `[B]`, and `goal` `[B, A, 2]` for `target` or `landmark` `[B, L, 2]` for the other tasks.
    """
    count, device = len(num_agents), num_agents.device
    active = torch.arange(agents, device=device) < num_agents.unsqueeze(-1)
    obstacle_mask = torch.arange(obstacles, device=device) < num_obstacles.unsqueeze(-1)
    side = half_side.view(-1, 1, 1)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, 2, generator=generator, device=device) * 2.0 - 1.0

    obstacle = uniform(obstacles) * inner * side
    places = uniform(agents, TRIES) * side.unsqueeze(-1)
    position, crowded = _place(
        places, active, obstacle=obstacle, obstacle_mask=obstacle_mask, spacing=spacing
    )
    if task in ("target", "coverage"):
        goal_places = uniform(agents, TRIES) * inner * side.unsqueeze(-1)
        goal, goals_crowded = _place(
            goal_places, active, obstacle=obstacle, obstacle_mask=obstacle_mask, spacing=spacing
        )
    else:
        shape = _circles if task == "formation" else _lines
        landmarks, room = shape(uniform(TRIES, 2), num_agents, half_side, obstacle, obstacle_mask)
        goal, goals_crowded = _first_clear(landmarks, room)
    return {
        "position": position,
        "goal" if task == "target" else "landmark": goal,
        "obstacle": obstacle,
        "active": active,
        "obstacle_mask": obstacle_mask,
        "crowded": crowded + goals_crowded,
    }


def _place(
    places: Tensor, exists: Tensor, *, obstacle: Tensor, obstacle_mask: Tensor, spacing: float
) -> tuple[Tensor, Tensor]:
    """Choose a candidate of `[B, A, K, 2]` for each body, `[B, A, 2]`, and count those too close, `[B]`."""
    clearance = _clearance(places, obstacle.unsqueeze(1), obstacle_mask.unsqueeze(1))
    taken = places[:, :0, 0]
    crowded = torch.zeros(len(places), dtype=torch.int64, device=places.device)
    for body in range(places.shape[1]):
        room = torch.minimum(clearance[:, body], _clearance(places[:, body], taken, exists[:, :body]))
        fits = room >= spacing
        found = fits.any(-1)
        choice = torch.where(found, fits.int().argmax(-1), room.argmax(-1))
        chosen = places[:, body].gather(1, choice.view(-1, 1, 1).expand(-1, 1, 2))
        taken = torch.cat((taken, chosen), 1)
        crowded += ~found & exists[:, body]
    return taken, crowded


def _circles(
    draw: Tensor, num_agents: Tensor, half_side: Tensor, obstacle: Tensor, exists: Tensor
) -> tuple[Tensor, Tensor]:
    """Return centres of circles `[B, K, 1, 2]` in the inner half of the square, and their clearance `[B, K]`.

    `draw` `[B, K, 2, 2]` is uniform in [-1, 1].
    """
    centre = 0.5 * half_side.view(-1, 1, 1) * draw[:, :, 0]
    apart = dynamics.length(centre.unsqueeze(2) - obstacle.unsqueeze(1))
    gap = (apart - tasks.circle_radius(num_agents).view(-1, 1, 1)).abs()
    return centre.unsqueeze(2), _masked_min(gap, exists.unsqueeze(1))


def _lines(
    draw: Tensor, num_agents: Tensor, half_side: Tensor, obstacle: Tensor, exists: Tensor
) -> tuple[Tensor, Tensor]:
    """Return ends of lines `[B, K, 2, 2]` of any direction near the square's centre, and their clearance."""
    centre = 0.25 * half_side.view(-1, 1, 1) * draw[:, :, 0]
    angle = torch.pi * draw[:, :, 1, 0]
    along = torch.stack((angle.cos(), angle.sin()), -1)
    half = 0.5 * tasks.line_length(num_agents, half_side).view(-1, 1, 1)
    offset = obstacle.unsqueeze(1) - centre.unsqueeze(2)
    share = (offset * along.unsqueeze(2)).sum(-1).clamp(-half, half)
    gap = dynamics.length(offset - share.unsqueeze(-1) * along.unsqueeze(2))
    return torch.stack((centre - half * along, centre + half * along), 2), _masked_min(
        gap, exists.unsqueeze(1)
    )


def _first_clear(landmarks: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first candidate of `[B, K, L, 2]` with a clearance of a diameter, and whether none has it.

    Without such a candidate, the one with the largest clearance is returned.
    """
    fits = room >= dynamics.DIAMETER
    found = fits.any(-1)
    choice = torch.where(found, fits.int().argmax(-1), room.argmax(-1))
    chosen = landmarks.gather(1, choice.view(-1, 1, 1, 1).expand(-1, 1, *landmarks.shape[2:])).squeeze(1)
    return chosen, (~found).long()


def _masked_min(distance: Tensor, exists: Tensor) -> Tensor:
    """Compute the minimum over existing entries of the last dimension; infinite without any."""
    distance = distance.masked_fill(~exists, torch.inf)
    return torch.nn.functional.pad(distance, (0, 1), value=torch.inf).amin(-1)


def _clearance(places: Tensor, others: Tensor, exists: Tensor) -> Tensor:
    """Compute the distance of each place `[..., K, 2]` to the nearest existing `others` `[..., M, 2]`."""
    offset = places.unsqueeze(-2) - others.unsqueeze(-3)
    return _masked_min(dynamics.length(offset), exists.unsqueeze(-2))
