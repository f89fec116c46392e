"""Settings of the swarm. Never imports torch."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from edgewise.config.bounds import FRAMES, REAL, Real
from edgewise.config.model import AppliesIf, Config
from edgewise.envs.ranges import RealRange, Whole, WholeRange, lower_bound, upper_bound

IF_OBSTACLES = AppliesIf("there may be obstacles", lambda _, own: own.obstacle_capacity > 0)
IF_DAMPED = AppliesIf("dynamics is damped", lambda _, own: own.dynamics == "damped")
IF_TARGETS = AppliesIf("task is target", lambda _, own: own.task == "target")
IF_SENSING = AppliesIf("sensing_radius is above 0", lambda _, own: own.sensing_radius > 0)


class SwarmConfig(Config):
    """Number of entities, task, observations, actions and rewards."""

    task: Literal["target", "coverage", "formation", "line"] = "target"
    """`target`: each agent has its own goal. `coverage`: a team occupies all landmarks. `formation`: it
    stands evenly on a circle around a landmark. `line`: it stands evenly between two landmarks. In team
    tasks, no agent is assigned a place."""
    num_agents: WholeRange = 3
    """Number of agents, or the range to sample it from."""
    num_obstacles: WholeRange = 3
    """Number of obstacles, or the range to sample it from."""
    max_steps: int = Field(25, gt=0, le=FRAMES)
    """Steps of an episode."""
    world_size: RealRange = 2.0
    """Side of the square in which all entities start, or the range to sample it from."""
    dynamics: Literal["damped", "double_integrator"] = "damped"
    """`damped`: agents with damping, a speed limit and soft contacts. `double_integrator`: that of GCBF+,
    which accelerates freely and passes through other bodies; it needs continuous actions."""
    obstacle_speed: Annotated[RealRange, IF_OBSTACLES] = 0.0
    """Speed of obstacles, which move straight and turn back at the sides of the square, or the range to
    sample the speed of each from; 0 for fixed obstacles."""
    walls: Annotated[bool, IF_DAMPED] = False
    """Whether walls keep agents inside the square."""
    constant_density: bool = False
    """Whether the square grows with the team, so that its density stays that of three agents."""
    sensing_radius: float = Field(1.0, ge=0, le=REAL)
    """Distance up to which entities are connected by edges; 0 for agents that sense nothing."""
    edge_features: Annotated[Literal["relative", "approach"], IF_SENSING] = "relative"
    """`relative`: displacement, distance and relative velocity. `approach`: displacement, relative velocity,
    how near a body is and the direction to it scaled by that: now, if both coast for one step and for two,
    and at the closest approach."""
    one_way: Annotated[bool, IF_SENSING] = False
    """Whether only agents receive messages; otherwise every entity does."""
    goal_nodes: Annotated[bool, IF_TARGETS] = False
    """Whether goals are nodes of the graph; otherwise each agent observes only the vector to its own.
    Landmarks of team tasks are always nodes."""
    ego_view: bool = False
    """Whether `agents.ego` contains the view of the reference implementation: every entity as seen by every
    agent. Its size is agents times entities."""
    continuous: bool = False
    """Whether the action is a force in [-1, 1]² instead of one of five directions."""
    prior: Literal["none", "straight", "cautious"] = "none"
    """Baseline whose action is observed as `action_prior`, for models with `model.prior`."""
    goal_threshold: float = Field(0.05, gt=0, le=REAL)
    """Distance to the goal at which an agent has arrived."""
    goal_reward: Real = 5.0
    """Reward for every step at the goal."""
    collision_cost: float = Field(5.0, ge=0, le=REAL)
    """Cost of every contact with an agent, and of contact with obstacles (once per step)."""
    goal_width: float = Field(0.0, ge=0, le=REAL)
    """Distance at which the goal reward has fallen to 1/e, so that it has a gradient; 0 for a reward that is
    constant within `goal_threshold`."""
    collision_margin: float = Field(0.0, ge=0, le=REAL)
    """Gap between two bodies at which the collision cost begins; it rises linearly to `collision_cost` at
    contact and further with the overlap, so that it has a gradient. 0 for a cost of contacts alone."""
    reward: Literal["shared", "mean", "individual"] = "shared"
    """Whether every agent receives the sum of all rewards (`shared`), their `mean`, or its own
    (`individual`)."""
    max_agents: Whole | None = None
    """Capacity in agents, for curricula that increase `num_agents`; by default as many as it needs."""
    max_obstacles: Whole | None = None
    """Capacity in obstacles, for curricula that increase `num_obstacles`; by default as many as it needs."""

    @property
    def agent_capacity(self) -> int:
        """Number of agent slots of a world."""
        return int(upper_bound(self.num_agents)) if self.max_agents is None else self.max_agents

    @property
    def obstacle_capacity(self) -> int:
        """Number of obstacle slots of a world."""
        return int(upper_bound(self.num_obstacles)) if self.max_obstacles is None else self.max_obstacles

    @property
    def landmark_capacity(self) -> int:
        """Number of goals or landmarks of a world."""
        return {"formation": 1, "line": 2}.get(self.task, self.agent_capacity)

    @property
    def obstacles_move(self) -> bool:
        """Whether obstacles have a velocity."""
        return upper_bound(self.obstacle_speed) > 0

    @property
    def shows_landmarks(self) -> bool:
        """Whether goals or landmarks are nodes of the graph."""
        return self.goal_nodes or self.task != "target"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lower_bound(self.num_agents) < 1:
            raise ValueError(f"a swarm needs at least 1 agent, got num_agents {self.num_agents}")
        if lower_bound(self.obstacle_speed) < 0:
            raise ValueError(f"obstacle_speed must not be negative, got {self.obstacle_speed}")
        if self.dynamics == "double_integrator" and (self.walls or not self.continuous):
            raise ValueError("dynamics double_integrator needs continuous: true and walls: false")
        if not lower_bound(self.world_size) > 0:
            raise ValueError(f"world_size must be positive, got {self.world_size}")
        if lower_bound(self.num_obstacles) < 0:
            raise ValueError(f"num_obstacles must not be negative, got {self.num_obstacles}")
        if upper_bound(self.num_agents) > self.agent_capacity:
            raise ValueError(f"num_agents {self.num_agents} exceeds max_agents {self.max_agents}")
        if upper_bound(self.num_obstacles) > self.obstacle_capacity:
            raise ValueError(f"num_obstacles {self.num_obstacles} exceeds max_obstacles {self.max_obstacles}")
        return self
