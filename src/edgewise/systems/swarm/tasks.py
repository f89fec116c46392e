"""Tasks in which nobody owns a place: where a team should stand, and who is nearest to standing where.

*Coverage*: one agent on each landmark. *Formation*: evenly on a circle about a landmark. *Line*: evenly
between two landmarks. All three after Agarwal et al. (https://arxiv.org/abs/1906.01202).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from edgewise.systems.swarm import dynamics
from edgewise.systems.swarm.matching import cheapest_matching

CIRCLE = 0.5
"""Radius of a formation, unless the team needs a larger one."""
LINE = 1.25
"""Length of a line in halves of the square's side, unless the team needs a longer one."""
SPACING = 1.5 * dynamics.DIAMETER
"""Places are never closer than this."""


def circle_radius(num_agents: Tensor) -> Tensor:
    """Radius of each team's formation, `[B]`."""
    return (num_agents * SPACING / (2 * math.pi)).clamp(min=CIRCLE)


def line_length(num_agents: Tensor, half_side: Tensor) -> Tensor:
    """Length of each team's line, `[B]`."""
    return torch.maximum((num_agents - 1) * SPACING, LINE * half_side)


def places(task: str, position: Tensor, landmark: Tensor, active: Tensor) -> Tensor:
    """Where the team should stand, `[B, A, 2]`; beyond the team's size they mean nothing.

    Args:
        task: `coverage`, `formation` or `line`.
        position: of agents, `[B, A, 2]`. A formation is turned so that the agent with the smallest angle
            about the landmark stands right.
        landmark: `[B, L, 2]`.
        active: which agents exist, `[B, A]`, the first ones.
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


def assigned(position: Tensor, place: Tensor, active: Tensor) -> Tensor:
    """The place of each agent `[B, A, 2]`, all different, so that the team has the least way to go in all."""
    way = dynamics.length(position.unsqueeze(-2) - place.unsqueeze(-3))
    exists = active.unsqueeze(-1) & active.unsqueeze(-2)
    neither = ~(active.unsqueeze(-1) | active.unsqueeze(-2))
    far = 1.0 + way.masked_fill(~exists, 0.0).sum((-1, -2)).view(-1, 1, 1)
    cost = torch.where(exists, way, torch.where(neither, 0.0, far))
    return place.gather(1, cheapest_matching(cost).unsqueeze(-1).expand_as(place))


def nearest_landmark(position: Tensor, landmark: Tensor, exists: Tensor) -> Tensor:
    """The way from each agent to the landmark next to it, `[B, A, 2]`; `exists` `[B, L]`."""
    way = landmark.unsqueeze(-3) - position.unsqueeze(-2)
    distance = dynamics.length(way).masked_fill(~exists.unsqueeze(-2), torch.inf)
    choice = distance.argmin(-1).view(*position.shape[:-1], 1, 1)
    return way.gather(-2, choice.expand(*choice.shape[:-1], 2)).squeeze(-2)
