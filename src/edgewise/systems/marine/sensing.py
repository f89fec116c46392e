"""Perception of robots and obstacles: noisy, within range, nearest first.

Shapes: A robots perceive M objects, all robots followed by all obstacles, so object i < A is robot i.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from edgewise.systems.marine import dynamics
from edgewise.systems.marine.dynamics import Motion

FEATURES = 5
"""Features of an object: position (2) and velocity (2) in the observer's body frame, and the radius."""
CONCENTRATION = 1.0
TABLE_SIZE = 4096


class Objects(NamedTuple):
    """True position, velocity over ground, radius and existence of all objects, each `[*B, M]`."""

    x: Tensor
    y: Tensor
    velocity_x: Tensor
    velocity_y: Tensor
    radius: Tensor
    exists: Tensor


class Scene(NamedTuple):
    """The part of a world's state that perception needs beside the robots' motion.

    Attributes:
        active: `[*B, A]` bool; only active robots perceive and are perceived.
        goal: `[*B, A, 2]`.
        obstacle: `[*B, O, 2]`.
        obstacle_radius: `[*B, O]`.
        obstacle_mask: `[*B, O]` bool.
    """

    active: Tensor
    goal: Tensor
    obstacle: Tensor
    obstacle_radius: Tensor
    obstacle_mask: Tensor


class Noise(NamedTuple):
    """Perception noise.

    Attributes:
        place: `[2, *B, A, M]` metres, added along the world's axes.
        velocity: `[2, *B, A, M]` metres per second, added along the world's axes.
        size: `[*B, A, M]`, factor of an object's radius.
    """

    place: Tensor
    velocity: Tensor
    size: Tensor


class Sensed(NamedTuple):
    """Perceived features of each object by each robot.

    Attributes:
        features: `[*B, A, M, 5]`, see `FEATURES`.
        gap: `[*B, A, M]`, distance to the object's edge; infinite if it is not detected.
    """

    features: Tensor
    gap: Tensor

    @property
    def detected(self) -> Tensor:
        """Whether an object is detected, `[*B, A, M]` bool."""
        return self.gap.isfinite()


class Perception(NamedTuple):
    """Result of `perceive`.

    Attributes:
        own: `[*B, A, 7]`: goal, velocity over ground, yaw rate and thrust, in the body frame.
        objects: `[*B, A, K, 5]`, nearest first, zero in empty slots.
        object_mask: `[*B, A, K]` bool.
        sensed: features of all objects.
        collided: `[*B, A]` bool, whether a robot touches something, by true positions.
    """

    own: Tensor
    objects: Tensor
    object_mask: Tensor
    sensed: Sensed
    collided: Tensor


def perceive(
    motion: Motion, scene: Scene, noise: Noise | None, *, detection_range: float, count: int
) -> Perception:
    """Compute what every active robot perceives.

    Args:
        motion: motion of the robots.
        scene: everything else.
        noise: result of `sample_noise`; None for perfect perception.
        detection_range: maximum distance in metres to an object's edge.
        count: K, number of object slots.
    """
    objects = objects_of(motion, scene)
    pairs = others(objects, scene.active)
    north, east = offsets(motion, objects)
    sensed = sense(
        motion, objects, north=north, east=east, pairs=pairs, detection_range=detection_range, noise=noise
    )
    listed, mask = nearest(sensed, count)
    touching = collisions(north, east, objects, pairs=pairs)
    return Perception(own_view(motion, scene.goal), listed, mask, sensed, touching)


def own_view(motion: Motion, goal: Tensor) -> Tensor:
    """Return each robot's own features, `[*B, A, 7]`, in metres, seconds and newtons."""
    cos, sin = motion.heading.cos(), motion.heading.sin()
    north, east = (goal - motion.position).unbind(-1)
    to_goal = dynamics.to_body(north, east, cos, sin)
    x, y, yaw_rate = motion.over_ground.unbind(-1)
    parts = (*to_goal, *dynamics.to_body(x, y, cos, sin), yaw_rate)
    return torch.cat((torch.stack(parts, -1), motion.thrust), -1)


def objects_of(motion: Motion, scene: Scene) -> Objects:
    """Concatenate robots and obstacles."""
    still = torch.zeros_like(scene.obstacle_radius)
    robots = torch.full_like(motion.heading, dynamics.RADIUS)
    return Objects(
        x=torch.cat((motion.position[..., 0], scene.obstacle[..., 0]), -1),
        y=torch.cat((motion.position[..., 1], scene.obstacle[..., 1]), -1),
        velocity_x=torch.cat((motion.over_ground[..., 0], still), -1),
        velocity_y=torch.cat((motion.over_ground[..., 1], still), -1),
        radius=torch.cat((robots, scene.obstacle_radius), -1),
        exists=torch.cat((scene.active, scene.obstacle_mask), -1),
    )


def others(objects: Objects, active: Tensor) -> Tensor:
    """Return the pairs of an active robot and an existing object other than itself, `[*B, A, M]` bool."""
    count, total = active.shape[-1], objects.exists.shape[-1]
    itself = torch.eye(count, total, dtype=torch.bool, device=active.device)
    return active.unsqueeze(-1) & objects.exists.unsqueeze(-2) & ~itself


def offsets(motion: Motion, objects: Objects) -> tuple[Tensor, Tensor]:
    """Return the true offsets from robots to objects, north and east, each `[*B, A, M]`."""
    x, y = motion.position.unsqueeze(-2).unbind(-1)
    return objects.x.unsqueeze(-2) - x, objects.y.unsqueeze(-2) - y


def collisions(north: Tensor, east: Tensor, objects: Objects, *, pairs: Tensor) -> Tensor:
    """Return which robots touch an object, `[*B, A]` bool; offsets from `offsets`, pairs `[*B, A, M]`."""
    reach = (objects.radius + dynamics.RADIUS).square().unsqueeze(-2)
    return ((torch.addcmul(north * north, east, east) <= reach) & pairs).any(-1)


def sense(
    motion: Motion,
    objects: Objects,
    *,
    north: Tensor,
    east: Tensor,
    pairs: Tensor,
    detection_range: float,
    noise: Noise | None,
) -> Sensed:
    """Compute the perceived features of every object for every robot.

    Args:
        motion: motion of the robots.
        objects: all objects.
        north: true offsets to the north, from `offsets`, `[*B, A, M]`.
        east: true offsets to the east.
        pairs: result of `others`.
        detection_range: maximum distance in metres to an object's edge.
        noise: None for perfect perception.
    """
    velocity_x, velocity_y = objects.velocity_x.unsqueeze(-2), objects.velocity_y.unsqueeze(-2)
    radius = objects.radius.unsqueeze(-2).expand_as(north)
    if noise is not None:
        north, east = north + noise.place[0], east + noise.place[1]
        velocity_x, velocity_y = velocity_x + noise.velocity[0], velocity_y + noise.velocity[1]
        radius = radius * noise.size
    gap = torch.addcmul(north * north, east, east).sqrt_().sub_(radius)
    gap = gap.masked_fill_(~pairs | (gap > detection_range), torch.inf)
    cos, sin = motion.heading.cos().unsqueeze(-1), motion.heading.sin().unsqueeze(-1)
    place = dynamics.to_body(north, east, cos, sin)
    speed = dynamics.to_body(velocity_x, velocity_y, cos, sin)
    return Sensed(torch.stack((*place, *(part.expand_as(gap) for part in speed), radius), -1), gap)


def nearest(sensed: Sensed, count: int) -> tuple[Tensor, Tensor]:
    """Select the `count` detected objects with the nearest edges, nearest first.

    Returns:
        Features `[*B, A, count, 5]`, zero in empty slots, and the mask `[*B, A, count]` of filled slots.
    """
    *lead, total = sensed.gap.shape
    kept = min(count, total)
    gap, choice = sensed.gap.topk(kept, dim=-1, largest=False, sorted=True)
    mask = gap.isfinite()
    first = torch.arange(0, sensed.gap.numel(), total, device=gap.device).view(*lead, 1)
    rows = sensed.features.flatten(0, -2).index_select(0, (first + choice).flatten())
    chosen = rows.view(*lead, kept, FEATURES).masked_fill_(~mask.unsqueeze(-1), 0.0)
    if kept < count:
        chosen = torch.nn.functional.pad(chosen, (0, 0, 0, count - kept))
        mask = torch.nn.functional.pad(mask, (0, count - kept))
    return chosen, mask


def size_table(device: torch.device) -> Tensor:
    """Return quantiles `[TABLE_SIZE]` of the factor of a perceived radius, `0.8 + 0.2 w / π`, w von Mises.

    Rejection sampling synchronises with the host; picking a random quantile does not.
    """
    angle = torch.linspace(-math.pi, math.pi, 1 << 16, dtype=torch.float64)
    mass = torch.cumulative_trapezoid(torch.exp(CONCENTRATION * angle.cos()), angle)
    mass = torch.nn.functional.pad(mass / mass[-1], (1, 0))
    middle = (torch.arange(TABLE_SIZE, dtype=torch.float64) + 0.5) / TABLE_SIZE
    above = torch.searchsorted(mass, middle)
    part = (middle - mass[above - 1]) / (mass[above] - mass[above - 1])
    quantile = torch.lerp(angle[above - 1], angle[above], part)
    return (0.8 + 0.2 * quantile / math.pi).float().to(device)


def sample_noise(
    scene: Scene, *, position: float, velocity: float, sizes: Tensor | None, generator: torch.Generator
) -> Noise:
    """Sample noise for every pair of robot and object.

    Args:
        scene: gives the numbers of robots and objects.
        position: standard deviation in metres.
        velocity: standard deviation in metres per second.
        sizes: result of `size_table`; None for true radii.
        generator: source of randomness.
    """
    *lead, robots = scene.active.shape
    shape, device = (*lead, robots, robots + scene.obstacle_mask.shape[-1]), scene.active.device
    normal = torch.randn(4, *shape, generator=generator, device=device)
    place, speed = normal[:2].mul_(position), normal[2:].mul_(velocity)
    if sizes is None:
        return Noise(place, speed, torch.ones(shape, device=device))
    entry = torch.randint(len(sizes), shape, generator=generator, device=device)
    return Noise(place, speed, sizes[entry])
