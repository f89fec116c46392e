"""Settings of the swarm. Never imports torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from edgewise.config.model import Config
from edgewise.envs.ranges import WholeRange, highest, lowest


class SwarmConfig(Config):
    """How many agents and obstacles there are, what they see and what they are paid for."""

    task: Literal["target", "coverage", "formation", "line"] = "target"
    """Whether each agent has a goal of its own, or a team should take all landmarks, stand evenly on a circle
    about one, or evenly between two, and nobody is told who goes where."""
    num_agents: WholeRange = 3
    """Agents of a world, or the range they are drawn from."""
    num_obstacles: WholeRange = 3
    """Obstacles of a world, or the range they are drawn from."""
    max_steps: int = Field(25, gt=0)
    """Steps of an episode."""
    world_size: float = Field(2.0, gt=0)
    """Side of the square in which everything is born."""
    walls: bool = False
    """Whether walls keep agents inside the square; without, nothing does."""
    constant_density: bool = False
    """Whether the square grows with the team, so that a larger team is no denser than one of three."""
    sensing_radius: float = Field(1.0, gt=0)
    """How far entities see each other."""
    one_way: bool = False
    """Whether only agents hear others; without, every entity does."""
    goal_nodes: bool = False
    """Whether goals are nodes of the graph; without, each agent still knows the way to its own. Landmarks of
    the other tasks always are."""
    ego_view: bool = False
    """Whether `agents.ego` holds the reference's view beside the graph: every entity as every agent sees it,
    which grows with agents times entities."""
    continuous: bool = False
    """Whether an agent gives a force in [-1, 1]², in place of one of five directions."""
    goal_threshold: float = Field(0.05, gt=0)
    """How near to its goal an agent has arrived."""
    goal_reward: float = 5.0
    """Paid for every step spent at the goal."""
    collision_cost: float = Field(5.0, ge=0)
    """Paid for every touch of an agent, and once for touching obstacles."""
    reward: Literal["shared", "mean", "individual"] = "shared"
    """Whether every agent receives the sum or the mean of all agents' rewards, or its own."""
    max_agents: int | None = None
    """Room for agents, for stages that grow; as many as `num_agents` needs if not given."""
    max_obstacles: int | None = None
    """Room for obstacles, for stages that grow; as many as `num_obstacles` needs if not given."""

    @property
    def agent_capacity(self) -> int:
        """How many agents a world has room for."""
        return int(highest(self.num_agents)) if self.max_agents is None else self.max_agents

    @property
    def obstacle_capacity(self) -> int:
        """How many obstacles a world has room for."""
        return int(highest(self.num_obstacles)) if self.max_obstacles is None else self.max_obstacles

    @property
    def landmark_capacity(self) -> int:
        """How many goals or landmarks a world has."""
        return {"formation": 1, "line": 2}.get(self.task, self.agent_capacity)

    @property
    def shows_landmarks(self) -> bool:
        """Whether goals or landmarks are nodes of the graph."""
        return self.goal_nodes or self.task != "target"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lowest(self.num_agents) < 1:
            raise ValueError(f"a swarm needs at least 1 agent, got num_agents {self.num_agents}")
        if lowest(self.num_obstacles) < 0:
            raise ValueError(f"num_obstacles must not be negative, got {self.num_obstacles}")
        if highest(self.num_agents) > self.agent_capacity:
            raise ValueError(
                f"num_agents {self.num_agents} needs more room than max_agents {self.max_agents}"
            )
        if highest(self.num_obstacles) > self.obstacle_capacity:
            raise ValueError(
                f"num_obstacles {self.num_obstacles} needs more room than max_obstacles {self.max_obstacles}"
            )
        return self
