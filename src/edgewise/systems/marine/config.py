"""Settings of the boats and their sea. Never imports torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from edgewise.config.model import Config
from edgewise.envs.ranges import RealRange, WholeRange, highest, lowest

FARTHEST = 60.0
"""The largest distance between start and goal that can be asked for in a square of 51 m."""


class MarineConfig(Config):
    """How many robots, obstacles and vortices there are, what robots see, and what they may do."""

    num_robots: WholeRange = 3
    """Robots of a world, or the range they are drawn from."""
    num_obstacles: WholeRange = 0
    """Obstacles of a world, or the range they are drawn from."""
    num_cores: WholeRange = 0
    """Vortices of the current, or the range they are drawn from."""
    min_start_goal_dis: RealRange = 30.0
    """Least distance in metres from a robot's start to its goal, or the range it is drawn from."""
    actions: Literal["continuous", "discrete"] = "continuous"
    """Whether a robot gives two numbers in [-1, 1] or one of 25 choices, for its left and right thruster."""
    max_steps: int = Field(1000, gt=0)
    """Steps, of half a second each, after which an episode is cut off."""
    max_objects: int = Field(5, ge=1)
    """K, how many of the nearest objects a robot's own observation lists."""
    detection_range: float = Field(20.0, gt=0)
    """How far robots see, in metres from their centre to an object's edge."""
    position_noise: float = Field(0.05, ge=0)
    """Standard deviation of perceived positions, in metres along each axis; 0 for none."""
    velocity_noise: float = Field(0.05, ge=0)
    """Standard deviation of perceived velocities, in metres per second along each axis; 0 for none."""
    radius_noise: bool = True
    """Whether objects are perceived as smaller than they are, 0.6 to 1 of their radius."""
    normalise: bool = True
    """Whether observations are scaled to about 1; false for metres, metres per second and newtons."""
    graph_edges: bool = True
    """Whether the graph joins each robot to all it detects; agents that read `agents.ego` can do without."""
    end_at_first_collision: bool = False
    """Whether a world ends with its first collision, as the reference evaluates."""
    compile: bool = False
    """Whether motion and perception run compiled; the first steps then take a minute."""
    parity: bool = False
    """Whether to keep what the reference does and we would not: see the card."""
    max_robots: int | None = None
    """Room for robots, for stages that grow; as many as `num_robots` needs if not given."""
    max_obstacles: int | None = None
    """Room for obstacles, for stages that grow; as many as `num_obstacles` needs if not given."""
    max_cores: int | None = None
    """Room for vortices, for stages that grow; as many as `num_cores` needs if not given."""

    @property
    def robot_capacity(self) -> int:
        """How many robots a world has room for."""
        return int(highest(self.num_robots)) if self.max_robots is None else self.max_robots

    @property
    def obstacle_capacity(self) -> int:
        """How many obstacles a world has room for."""
        return int(highest(self.num_obstacles)) if self.max_obstacles is None else self.max_obstacles

    @property
    def core_capacity(self) -> int:
        """How many vortices a world has room for."""
        return int(highest(self.num_cores)) if self.max_cores is None else self.max_cores

    @property
    def capacity(self) -> tuple[int, int, int]:
        """Room for robots, obstacles and vortices."""
        return self.robot_capacity, self.obstacle_capacity, self.core_capacity

    @property
    def noisy(self) -> bool:
        """Whether anything is perceived other than it is."""
        return self.radius_noise or self.position_noise > 0 or self.velocity_noise > 0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lowest(self.num_robots) < 1:
            raise ValueError(f"there must be at least 1 robot, got num_robots {self.num_robots}")
        kinds = zip(("robots", "obstacles", "cores"), self.capacity, strict=True)
        for kind, room in kinds:
            wanted = getattr(self, f"num_{kind}")
            if lowest(wanted) < 0:
                raise ValueError(f"num_{kind} must not be negative, got {wanted}")
            if highest(wanted) > room:
                raise ValueError(f"num_{kind} {wanted} needs more room than max_{kind} {room}")
        if not 0 <= lowest(self.min_start_goal_dis) <= highest(self.min_start_goal_dis) <= FARTHEST:
            raise ValueError(
                f"min_start_goal_dis must lie between 0 and {FARTHEST:g} m, got {self.min_start_goal_dis}"
            )
        return self
