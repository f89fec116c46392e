"""The swarm environment: agents that move to their goals between obstacles."""

from __future__ import annotations

import math

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete
from edgewise.systems.swarm import double_integrator, dynamics, observe, scenario, tasks
from edgewise.systems.swarm.config import SwarmConfig


class SwarmEnv(GraphEnv[SwarmConfig]):
    """Agents steer to their goals between obstacles and each other. README.md is the card.

    Example:
        >>> env = SwarmEnv(SwarmConfig(num_agents=(3, 7)), num_envs=8, seed=0)
        >>> env.rollout(5)["next", "reward"].shape
        torch.Size([8, 5, 7, 1])
    """

    stage_settings = ("num_agents", "num_obstacles", "collision_cost")
    rules = "edgewise.systems.swarm.baselines:BASELINES"

    def setup(self) -> None:
        """Define the graph and the action layout."""
        self.graph = observe.graph_spec(self.config)
        agents = self.config.agent_capacity
        self.actions = AgentsContinuous(agents, 2) if self.config.continuous else AgentsDiscrete(agents, 5)

    def check_stage(self, stage: SwarmConfig) -> None:
        """Refuse a stage that needs more agents or obstacles than the environment has room for."""
        room = self.built_with.agent_capacity, self.built_with.obstacle_capacity
        if stage.agent_capacity > room[0] or stage.obstacle_capacity > room[1]:
            raise ConfigError(
                f"num_agents {stage.num_agents} and num_obstacles {stage.num_obstacles} do not fit: "
                f"there is room for {room[0]} and {room[1]}",
                hint=f"build it with max_agents={stage.agent_capacity} and "
                f"max_obstacles={stage.obstacle_capacity}",
            )

    def spawn(self, count: int) -> Entries:
        """Sample new worlds with every agent at rest."""
        stage = self.config
        num_agents = self.sample_int(stage.num_agents, count)
        side = stage.world_size
        half_side = (
            self.sample_float(side, count) / 2
            if isinstance(side, tuple)
            else torch.full((count,), side / 2, device=self.device)
        )
        if stage.constant_density:
            half_side = half_side * (num_agents / 3).sqrt()
        free = self.config.dynamics == "double_integrator"
        placed = scenario.sample_swarms(
            num_agents,
            self.sample_int(stage.num_obstacles, count),
            half_side=half_side,
            agents=self.num_agents,
            obstacles=self.built_with.obstacle_capacity,
            task=self.config.task,
            generator=self.generator,
            spacing=double_integrator.SPACING if free else dynamics.DIAMETER,
            inner=1.0 if free else scenario.INNER,
        )
        if self.config.obstacles_move:
            placed["obstacle_velocity"] = self._obstacle_velocity(count)
        has_sides = self.config.walls or self.config.obstacles_move
        return self.initial_state(placed | ({"half_side": half_side} if has_sides else {}))

    def _obstacle_velocity(self, count: int) -> Tensor:
        """Sample velocities of any direction, `[count, O, 2]`."""
        number = count * self.built_with.obstacle_capacity
        speed = self.sample_float(self.config.obstacle_speed, number)
        angle = self.sample_float((0.0, 2 * math.pi), number)
        velocity = speed.unsqueeze(-1) * torch.stack((angle.cos(), angle.sin()), -1)
        return velocity.view(count, -1, 2)

    def initial_state(self, placed: dict[str, Tensor]) -> dict[str, Tensor]:
        """Complete a state from the bodies' positions: at rest, all sums zero."""
        pairs = dynamics.gaps(
            placed["position"], placed["obstacle"], placed["active"], placed["obstacle_mask"]
        )
        never = torch.full_like(placed["active"], self.config.max_steps + 1, dtype=torch.int64)
        none = placed["position"].new_zeros(len(never))
        return placed | {
            "goal": self._goal(placed, placed["position"]),
            "velocity": torch.zeros_like(placed["position"]),
            "contact": self._contact(placed, placed["position"], pairs),
            "arrival": never,
            "touched": torch.zeros_like(placed["active"]),
            "touches": none,
            "earned": none.clone(),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Move the agents by thrust and contact forces, and compute rewards."""
        config, active = self.config, state["active"]
        position, velocity = self._move(state, action)
        moved = self._move_obstacles(state)
        obstacle = moved.get("obstacle", state["obstacle"])
        pairs = dynamics.gaps(position, obstacle, active, state["obstacle_mask"])
        goal = self._goal(state, position)
        left = dynamics.length(goal - position)
        touches = dynamics.touched(pairs)
        progress = dynamics.goal_progress(
            left,
            threshold=config.goal_threshold,
            goal_reward=config.goal_reward,
            width=config.goal_width,
        )
        contacts = dynamics.contact_share(pairs, touches, margin=config.collision_margin)
        own = (progress - self.config.collision_cost * contacts).masked_fill(~active, 0.0)
        there = left < config.goal_threshold
        if config.task != "target":
            there = (there | ~active).all(-1, keepdim=True)
        arrived = torch.where(there, state["step"].unsqueeze(-1) + 1, state["arrival"])
        changed = {
            "position": position,
            "velocity": velocity,
            "goal": goal,
            "contact": self._contact(state, position, pairs),
            "arrival": torch.minimum(arrived, state["arrival"]),
            "touched": state["touched"] | (active & ((touches.agents > 0) | touches.obstacle)),
            "touches": state["touches"] + (0.5 * touches.agents + touches.obstacle).sum(-1),
            "earned": state["earned"] + own.sum(-1),
        }
        return Transition(changed | moved, reward=self._team_reward(own, active))

    def _move(self, state: TensorDict, action: Tensor) -> tuple[Tensor, Tensor]:
        """Move the agents by their actions and by contact forces; return positions and velocities."""
        if self.config.dynamics == "double_integrator":
            return double_integrator.move(state["position"], state["velocity"], action)
        thrust = (
            dynamics.SENSITIVITY * action
            if self.config.continuous
            else dynamics.control_force(action, state["goal"])
        )
        return dynamics.move(state["position"], state["velocity"], thrust + state["contact"])

    def _move_obstacles(self, state: TensorDict) -> dict[str, Tensor]:
        """Return the changed entries of obstacles; nothing if they do not move."""
        if not self.config.obstacles_move:
            return {}
        obstacle, velocity = dynamics.move_obstacles(
            state["obstacle"], state["obstacle_velocity"], half_side=state["half_side"], step=self.time_step
        )
        return {"obstacle": obstacle, "obstacle_velocity": velocity}

    @property
    def time_step(self) -> float:
        """Duration of a step."""
        free = self.config.dynamics == "double_integrator"
        return double_integrator.TIME_STEP if free else dynamics.TIME_STEP

    def _goal(self, state: Entries, position: Tensor) -> Tensor:
        """Return the target position of each agent, `[B, A, 2]`: its goal, or its assigned place."""
        if self.config.task == "target":
            return state["goal"]
        place = tasks.places(self.config.task, position, state["landmark"], state["active"])
        return tasks.assigned_places(position, place, state["active"])

    def _contact(self, state: Entries, position: Tensor, pairs: dynamics.Gaps) -> Tensor:
        """Compute the contact force on each agent from agents, obstacles and walls, `[B, A, 2]`.

        It has no gradient: that of bodies which bounce off each other is chaotic, and hides that of steering.
        """
        if self.config.dynamics == "double_integrator":
            return torch.zeros_like(position)
        force = dynamics.contact_force(pairs)
        if self.config.walls:
            force = force + dynamics.wall_force(position, state["half_side"])
        return force.detach()

    def _team_reward(self, own: Tensor, active: Tensor) -> Tensor:
        """Return the rewards by the setting `reward`: individual, mean or shared, `[B, A]`."""
        if self.config.reward == "individual":
            return own
        total = own.sum(-1, keepdim=True)
        if self.config.reward == "mean":
            total = total / active.sum(-1, keepdim=True).clamp(min=1)
        return total.expand_as(own)

    def observe(self, state: TensorDict) -> Entries:
        """Return the graph and the metrics, and the ego graphs if `ego_view` is set."""
        config = self.config
        seen = {
            "graph": observe.graph(state, config),
            "metrics": observe.metrics(state, max_steps=config.max_steps),
        }
        return seen | ({"agents": {"ego": observe.ego_graphs(state, config.task)}} if config.ego_view else {})
