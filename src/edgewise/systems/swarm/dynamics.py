"""Physics and reward of the swarm: soft contacts, damped point masses, goal reward and collision cost.

Shapes: `[*B, A]` agents, `[*B, O]` obstacles, with masks. Absent bodies exert no force and earn no reward.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.scale.devices import constant

TIME_STEP = 0.1
DAMPING = 0.25
SENSITIVITY = 5.0
MAX_SPEED = 2.0
DIAMETER = 0.1
CONTACT_FORCE = 100.0
CONTACT_MARGIN = 1e-3
DIRECTIONS = ((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))


@dataclass(frozen=True)
class Gaps:
    """Pairwise offsets and distances.

    Attributes:
        to_agents: `[*B, A, A, 2]`, position of the first minus position of the second.
        agent_distance: `[*B, A, A]`, infinite for absent agents and on the diagonal.
        to_obstacles: `[*B, A, O, 2]`.
        obstacle_distance: `[*B, A, O]`, infinite for absent ones.
    """

    to_agents: Tensor
    agent_distance: Tensor
    to_obstacles: Tensor
    obstacle_distance: Tensor


def gaps(position: Tensor, obstacles: Tensor, agent_mask: Tensor, obstacle_mask: Tensor) -> Gaps:
    """Compute pairwise offsets and distances from positions `[*B, A, 2]` and obstacles `[*B, O, 2]`."""
    to_agents = position.unsqueeze(-2) - position.unsqueeze(-3)
    to_obstacles = position.unsqueeze(-2) - obstacles.unsqueeze(-3)
    alone = torch.eye(position.shape[-2], dtype=torch.bool, device=position.device)
    no_pair = ~(agent_mask.unsqueeze(-1) & agent_mask.unsqueeze(-2)) | alone
    no_obstacle = ~(agent_mask.unsqueeze(-1) & obstacle_mask.unsqueeze(-2))
    return Gaps(
        to_agents,
        length(to_agents).masked_fill(no_pair, torch.inf),
        to_obstacles,
        length(to_obstacles).masked_fill(no_obstacle, torch.inf),
    )


def length(vector: Tensor) -> Tensor:
    """Compute the Euclidean length of the last dimension; cheaper than a norm for two components.

    The gradient of a vector of length 0 is 0, where that of `torch.hypot` is NaN.
    """
    if vector.requires_grad:
        return torch.linalg.vector_norm(vector, dim=-1)
    return torch.hypot(vector[..., 0], vector[..., 1])


def time_of_closest_approach(offset: Tensor, velocity: Tensor) -> Tensor:
    """Return when a body at `offset` `[..., 2]` that moves at `velocity` is nearest, `[...]`."""
    return -(offset * velocity).sum(-1) / velocity.square().sum(-1).clamp(min=1e-9)


def control_force(action: Tensor, like: Tensor) -> Tensor:
    """Return the thrust `[*B, A, 2]` of discrete actions `[*B, A]`: none, +x, -x, +y, -y; dtype as `like`."""
    return SENSITIVITY * constant(DIRECTIONS, like, dtype=like.dtype)[action]


def repulsion(offset: Tensor, distance: Tensor, reach: float = DIAMETER) -> Tensor:
    """Compute the soft contact force along `offset`, summed over the second-last dimension.

    `F = 100 · (p_i − p_j)/d · k · log(1 + exp(−(d − d_min)/k))`, k = 1e-3. Coincident bodies have no
    direction and exert no force.
    """
    depth = torch.nn.functional.softplus((reach - distance) / CONTACT_MARGIN, threshold=30.0)
    strength = CONTACT_FORCE * CONTACT_MARGIN * depth / distance.clamp(min=1e-12)
    return (strength.unsqueeze(-1) * offset).sum(-2)


def contact_force(pairs: Gaps) -> Tensor:
    """Compute the contact force of other agents and obstacles on each agent, `[*B, A, 2]`."""
    from_agents = repulsion(pairs.to_agents, pairs.agent_distance)
    return from_agents + repulsion(pairs.to_obstacles, pairs.obstacle_distance)


def wall_force(position: Tensor, half_side: Tensor) -> Tensor:
    """Compute the force of four walls on agents at `[*B, A, 2]`, `[*B, A, 2]`; `half_side` is `[*B]`.

    A wall pushes an agent whose centre leaves the square, with the contact force of other bodies. The force
    only grows with the depth, so no agent gets through.
    """
    side = half_side.view(*half_side.shape, 1, 1)
    inward = torch.stack((-side - position, position - side), -1) / CONTACT_MARGIN
    push = CONTACT_FORCE * CONTACT_MARGIN * torch.nn.functional.softplus(inward, threshold=30.0)
    return push[..., 0] - push[..., 1]


def move(position: Tensor, velocity: Tensor, force: Tensor) -> tuple[Tensor, Tensor]:
    """Take one semi-implicit Euler step of damped unit masses with a speed limit; all `[*B, A, 2]`."""
    velocity = (1.0 - DAMPING) * velocity + TIME_STEP * force
    speed = length(velocity).unsqueeze(-1)
    velocity = velocity * (MAX_SPEED / speed.clamp(min=MAX_SPEED))
    return position + TIME_STEP * velocity, velocity


def move_obstacles(
    obstacle: Tensor, velocity: Tensor, *, half_side: Tensor, step: float
) -> tuple[Tensor, Tensor]:
    """Move obstacles `[*B, O, 2]` straight for a time `step`; those that leave the square turn back.

    Args:
        obstacle: positions.
        velocity: same shape.
        half_side: half the side of each square, `[*B]`.
        step: duration.

    Returns:
        New positions and velocities.
    """
    side = half_side.view(*half_side.shape, 1, 1)
    moved = obstacle + step * velocity
    inward = torch.where(moved > side, -velocity.abs(), torch.where(moved < -side, velocity.abs(), velocity))
    return torch.minimum(torch.maximum(moved, -side), side), inward


@dataclass(frozen=True)
class Touches:
    """Contacts of each agent, `[*B, A]`: number of touched `agents`, and whether it touches an `obstacle`."""

    agents: Tensor
    obstacle: Tensor


def touched(pairs: Gaps) -> Touches:
    """Find bodies closer than their diameter."""
    agents = (pairs.agent_distance < DIAMETER).sum(-1)
    return Touches(agents, (pairs.obstacle_distance < DIAMETER).any(-1))


def goal_progress(distance: Tensor, *, threshold: float, goal_reward: float, width: float) -> Tensor:
    """Compute the reward for the distance to the goal, any shape.

    It is the goal reward within the threshold, else minus the distance. With a `width` it has a gradient
    everywhere: minus the distance, plus a goal reward that falls exponentially with it.
    """
    if width:
        return goal_reward * torch.exp(-distance / width) - distance
    return torch.where(distance < threshold, goal_reward, -distance)


def contact_share(pairs: Gaps, touches: Touches, *, margin: float) -> Tensor:
    """Return how many collision costs each agent pays, `[*B, A]`: touched agents, plus 1 for any obstacle.

    With a `margin`, each agent and the nearest obstacle count by their gap instead: 1 at contact, more with
    the overlap, less before it, and 0 from a gap of `margin` on.
    """
    if not margin:
        return touches.agents + touches.obstacle

    def share(distance: Tensor) -> Tensor:
        return (1.0 - (distance - DIAMETER) / margin).clamp(min=0.0)

    obstacle = torch.nn.functional.pad(pairs.obstacle_distance, (0, 1), value=torch.inf).amin(-1)
    return share(pairs.agent_distance).sum(-1) + share(obstacle)
