"""What robots perceive of each other and of obstacles: noisy, within range, the nearest first.

Symbols: A robots perceive M objects, all robots and then all obstacles, so that object i is robot i.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from edgewise.systems.marine import dynamics
from edgewise.systems.marine.dynamics import Motion

FEATURES = 5
"""Of an object: position and velocity in the observer's body frame, two numbers each, and the radius."""
CONCENTRATION = 1.0
TABLE_SIZE = 4096


class Objects(NamedTuple):
    """All there is to perceive, each `[*B, M]`: place, velocity over ground, radius, whether it is there."""

    x: Tensor
    y: Tensor
    velocity_x: Tensor
    velocity_y: Tensor
    radius: Tensor
    exists: Tensor


class Scene(NamedTuple):
    """What of a world is perceived besides motion: acting robots `[*B, A]`, obstacles `[*B, O]`, goals.

    Attributes:
        active: `[*B, A]` bool; only active robots see and are seen.
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
    """How perception errs.

    Attributes:
        place: `[2, *B, A, M]` metres, added along the world's axes.
        velocity: `[2, *B, A, M]` metres per second.
        size: `[*B, A, M]`, the part of an object's radius that is seen.
    """

    place: Tensor
    velocity: Tensor
    size: Tensor


class Sensed(NamedTuple):
    """What each robot makes of each object.

    Attributes:
        features: `[*B, A, M, 5]`, see `FEATURES`.
        gap: `[*B, A, M]`, distance to the object's edge; infinite where it is not detected.
    """

    features: Tensor
    gap: Tensor

    @property
    def detected(self) -> Tensor:
        """`[*B, A, M]` bool."""
        return self.gap.isfinite()


class Perception(NamedTuple):
    """What robots know after a look around.

    Attributes:
        own: `[*B, A, 7]`: goal, velocity over ground, yaw rate and thrust, in the body frame.
        objects: `[*B, A, K, 5]`, the nearest first, zero where there is none.
        object_mask: `[*B, A, K]` bool.
        sensed: of all objects.
        collided: `[*B, A]` bool, whether a robot truly touches something.
    """

    own: Tensor
    objects: Tensor
    object_mask: Tensor
    sensed: Sensed
    collided: Tensor


def perceive(
    motion: Motion, scene: Scene, noise: Noise | None, *, detection_range: float, count: int
) -> Perception:
    """A look around of all active robots.

    Args:
        motion: of the robots.
        scene: everything else.
        noise: as of `draw_noise`; None to see things as they are.
        detection_range: metres to an object's edge.
        count: K, how many objects to list.
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
    """What each robot knows of itself, `[*B, A, 7]`, in metres, seconds and newtons."""
    cos, sin = motion.heading.cos(), motion.heading.sin()
    north, east = (goal - motion.position).unbind(-1)
    to_goal = dynamics.to_body(north, east, cos, sin)
    x, y, yaw_rate = motion.over_ground.unbind(-1)
    parts = (*to_goal, *dynamics.to_body(x, y, cos, sin), yaw_rate)
    return torch.cat((torch.stack(parts, -1), motion.thrust), -1)


def objects_of(motion: Motion, scene: Scene) -> Objects:
    """The robots that act, then the obstacles."""
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
    """Which pairs of an active robot and an object other than itself there are, `[*B, A, M]` bool."""
    count, total = active.shape[-1], objects.exists.shape[-1]
    itself = torch.eye(count, total, dtype=torch.bool, device=active.device)
    return active.unsqueeze(-1) & objects.exists.unsqueeze(-2) & ~itself


def offsets(motion: Motion, objects: Objects) -> tuple[Tensor, Tensor]:
    """How far north and east of each robot each object truly is, each `[*B, A, M]`."""
    x, y = motion.position.unsqueeze(-2).unbind(-1)
    return objects.x.unsqueeze(-2) - x, objects.y.unsqueeze(-2) - y


def collisions(north: Tensor, east: Tensor, objects: Objects, *, pairs: Tensor) -> Tensor:
    """Which robots truly touch one of their `pairs` `[*B, A, M]`, `[*B, A]` bool; offsets as of `offsets`."""
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
    """Every robot's view of every object.

    Args:
        motion: of the robots.
        objects: what there is to see.
        north: true offsets as of `offsets`, `[*B, A, M]`.
        east: likewise.
        pairs: which robots can see which objects at all, as of `others`.
        detection_range: metres to an object's edge.
        noise: None to see things as they are.
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
    """The `count` detected objects with the nearest edges, in order, and which of the slots are filled.

    Returns:
        `[*B, A, count, 5]`, zero where there is no object, and `[*B, A, count]` bool.
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
    """Equally likely parts of a radius that are seen, `[TABLE_SIZE]`: `0.8 + 0.2 w / π`, w of von Mises.

    Drawing from a distribution by rejection waits for the host; drawing an entry of its quantiles does not.
    """
    angle = torch.linspace(-math.pi, math.pi, 1 << 16, dtype=torch.float64)
    mass = torch.cumulative_trapezoid(torch.exp(CONCENTRATION * angle.cos()), angle)
    mass = torch.nn.functional.pad(mass / mass[-1], (1, 0))
    middle = (torch.arange(TABLE_SIZE, dtype=torch.float64) + 0.5) / TABLE_SIZE
    above = torch.searchsorted(mass, middle)
    part = (middle - mass[above - 1]) / (mass[above] - mass[above - 1])
    quantile = torch.lerp(angle[above - 1], angle[above], part)
    return (0.8 + 0.2 * quantile / math.pi).float().to(device)


def draw_noise(
    scene: Scene, *, position: float, velocity: float, sizes: Tensor | None, generator: torch.Generator
) -> Noise:
    """Fresh noise for every pair of robot and object.

    Args:
        scene: whose numbers of robots and objects noise takes.
        position: standard deviation in metres.
        velocity: standard deviation in metres per second.
        sizes: what `size_table` gives; None to see true sizes.
        generator: draws everything.
    """
    *lead, robots = scene.active.shape
    shape, device = (*lead, robots, robots + scene.obstacle_mask.shape[-1]), scene.active.device
    normal = torch.randn(4, *shape, generator=generator, device=device)
    place, speed = normal[:2].mul_(position), normal[2:].mul_(velocity)
    if sizes is None:
        return Noise(place, speed, torch.ones(shape, device=device))
    entry = torch.randint(len(sizes), shape, generator=generator, device=device)
    return Noise(place, speed, sizes[entry])
