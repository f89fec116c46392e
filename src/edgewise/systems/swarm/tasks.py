"""Tasks without individual goals: the target places of a team and their assignment to agents.

*Coverage*: one agent on each landmark. *Formation*: evenly on a circle around a landmark. *Line*: evenly
between two landmarks. All three follow Agarwal et al. (https://arxiv.org/abs/1906.01202).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from edgewise.systems.swarm import dynamics
from edgewise.systems.swarm.matching import min_cost_matching

CIRCLE = 0.5
"""Radius of a formation, unless the team needs a larger one."""
LINE = 1.25
"""Length of a line as a multiple of half the square's side, unless the team needs a longer one."""
SPACING = 1.5 * dynamics.DIAMETER
"""Minimum distance between places."""


def circle_radius(num_agents: Tensor) -> Tensor:
    """Compute the radius of each team's formation, `[B]`."""
    return (num_agents * SPACING / (2 * math.pi)).clamp(min=CIRCLE)


def line_length(num_agents: Tensor, half_side: Tensor) -> Tensor:
    """Compute the length of each team's line, `[B]`."""
    return torch.maximum((num_agents - 1) * SPACING, LINE * half_side)


def places(task: str, position: Tensor, landmark: Tensor, active: Tensor) -> Tensor:
    """Compute the target places of a team, `[B, A, 2]`; entries beyond the team's size are arbitrary.

    Args:
        task: `coverage`, `formation` or `line`.
        position: positions of the agents, `[B, A, 2]`. A formation is rotated so that one place has the same
            angle as the agent with the smallest angle around the landmark.
        landmark: `[B, L, 2]`.
        active: mask of existing agents, `[B, A]`, which come first.
    """
    if task == "coverage":
        return landmark
    number = torch.arange(active.shape[-1], device=active.device, dtype=position.dtype)
    agents = active.sum(-1, keepdim=True)
    if task == "line":
        share = number / (agents - 1).clamp(min=1)
        return landmark[:, :1] + share.unsqueeze(-1) * (landmark[:, 1:] - landmark[:, :1])
    around = position - landmark
    angle = torch.atan2(around[..., 1], around[..., 0]) % (2 * math.pi)
    first = angle.masked_fill(~active, torch.inf).amin(-1, keepdim=True)
    turned = first + 2 * math.pi * number / agents
    radius = circle_radius(agents).unsqueeze(-1)
    return landmark + radius * torch.stack((turned.cos(), turned.sin()), -1)


def assigned_places(position: Tensor, place: Tensor, active: Tensor) -> Tensor:
    """Assign places to agents with the shortest total distance; return each agent's place, `[B, A, 2]`."""
    way = dynamics.length(position.unsqueeze(-2) - place.unsqueeze(-3))
    exists = active.unsqueeze(-1) & active.unsqueeze(-2)
    neither = ~(active.unsqueeze(-1) | active.unsqueeze(-2))
    far = 1.0 + way.masked_fill(~exists, 0.0).sum((-1, -2)).view(-1, 1, 1)
    cost = torch.where(exists, way, torch.where(neither, 0.0, far))
    return place.gather(1, min_cost_matching(cost.detach()).unsqueeze(-1).expand_as(place))


def nearest_landmark(position: Tensor, landmark: Tensor, exists: Tensor) -> Tensor:
    """Return the offset from each agent to the nearest landmark, `[B, A, 2]`; `exists` is `[B, L]`."""
    way = landmark.unsqueeze(-3) - position.unsqueeze(-2)
    distance = dynamics.length(way).masked_fill(~exists.unsqueeze(-2), torch.inf)
    choice = distance.argmin(-1).view(*position.shape[:-1], 1, 1)
    return way.gather(-2, choice.expand(*choice.shape[:-1], 2)).squeeze(-2)
