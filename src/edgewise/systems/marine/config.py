"""Settings of the boats and their sea. Never imports torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from edgewise.config.bounds import FRAMES, NODES, REAL
from edgewise.config.model import Config
from edgewise.envs.ranges import RealRange, Whole, WholeRange, lower_bound, upper_bound

FARTHEST = 60.0
"""Largest allowed minimum distance between start and goal, in metres, in a square of 51 m."""


class MarineConfig(Config):
    """Number of robots, obstacles and vortices, observations and actions."""

    num_robots: WholeRange = 3
    """Number of robots, or the range to sample it from."""
    num_obstacles: WholeRange = 0
    """Number of obstacles, or the range to sample it from."""
    num_cores: WholeRange = 0
    """Number of vortices of the current, or the range to sample it from."""
    min_start_goal_dis: RealRange = 30.0
    """Minimum distance in metres from a robot's start to its goal, or the range to sample it from."""
    actions: Literal["continuous", "discrete"] = "continuous"
    """Whether the action of a robot is two numbers in [-1, 1] or one of 25 choices, for its left and right
    thruster."""
    max_steps: int = Field(1000, gt=0, le=FRAMES)
    """Steps, of half a second each, after which an episode is truncated."""
    max_objects: int = Field(5, ge=1, le=NODES)
    """Number of nearest objects in a robot's egocentric observation (K)."""
    detection_range: float = Field(20.0, gt=0, le=REAL)
    """Range of perception in metres, from a robot's centre to an object's edge."""
    position_noise: float = Field(0.05, ge=0, le=REAL)
    """Standard deviation of observed positions, in metres per axis; 0 for none."""
    velocity_noise: float = Field(0.05, ge=0, le=REAL)
    """Standard deviation of observed velocities, in metres per second per axis; 0 for none."""
    radius_noise: bool = True
    """Whether the observed radius of objects is reduced by a random factor from 0.6 to 1."""
    normalise: bool = True
    """Whether observations are scaled to about 1; otherwise they are in metres, metres per second and
    newtons."""
    graph_edges: bool = True
    """Whether edges connect each robot to all objects it detects; agents that only read `agents.ego` do not
    need them."""
    end_at_first_collision: bool = False
    """Whether a world ends with its first collision, as in the evaluation of the reference."""
    compile: bool = False
    """Whether to compile dynamics and perception; the first steps then take a minute."""
    parity: bool = False
    """Whether to reproduce peculiarities of the reference implementation; see the environment card."""
    max_robots: Whole | None = None
    """Capacity in robots, for curricula that increase `num_robots`; by default as many as it needs."""
    max_obstacles: Whole | None = None
    """Capacity in obstacles, for curricula that increase `num_obstacles`; by default as many as it needs."""
    max_cores: Whole | None = None
    """Capacity in vortices, for curricula that increase `num_cores`; by default as many as it needs."""

    @property
    def robot_capacity(self) -> int:
        """Number of robot slots of a world."""
        return int(upper_bound(self.num_robots)) if self.max_robots is None else self.max_robots

    @property
    def obstacle_capacity(self) -> int:
        """Number of obstacle slots of a world."""
        return int(upper_bound(self.num_obstacles)) if self.max_obstacles is None else self.max_obstacles

    @property
    def core_capacity(self) -> int:
        """Number of vortex slots of a world."""
        return int(upper_bound(self.num_cores)) if self.max_cores is None else self.max_cores

    @property
    def capacity(self) -> tuple[int, int, int]:
        """Number of slots for robots, obstacles and vortices."""
        return self.robot_capacity, self.obstacle_capacity, self.core_capacity

    @property
    def noisy(self) -> bool:
        """Whether observations are noisy."""
        return self.radius_noise or self.position_noise > 0 or self.velocity_noise > 0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lower_bound(self.num_robots) < 1:
            raise ValueError(f"there must be at least 1 robot, got num_robots {self.num_robots}")
        kinds = zip(("robots", "obstacles", "cores"), self.capacity, strict=True)
        for kind, room in kinds:
            wanted = getattr(self, f"num_{kind}")
            if lower_bound(wanted) < 0:
                raise ValueError(f"num_{kind} must not be negative, got {wanted}")
            if upper_bound(wanted) > room:
                raise ValueError(f"num_{kind} {wanted} exceeds max_{kind} {room}")
        if not 0 <= lower_bound(self.min_start_goal_dis) <= upper_bound(self.min_start_goal_dis) <= FARTHEST:
            raise ValueError(
                f"min_start_goal_dis must be between 0 and {FARTHEST:g} m, got {self.min_start_goal_dis}"
            )
        return self
