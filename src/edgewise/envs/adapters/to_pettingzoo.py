"""A graph environment as a PettingZoo environment: teams as `ParallelEnv`, games of two as `AECEnv`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.envs.adapters.outside_view import (
    Arrays,
    action_space_of,
    first_world,
    graph_tensors,
    legal_or_replaced,
    needed,
    observation_of,
    space_of,
)
from edgewise.envs.adapters.outside_view import arrays as as_arrays
from edgewise.envs.adapters.to_gymnasium import Illegal
from edgewise.envs.base import GraphEnv
from edgewise.graphs.keys import GRAPH, MASK

pettingzoo = needed("pettingzoo", "pettingzoo")


def to_pettingzoo(env: GraphEnv[Any], *, illegal: Illegal = "raise") -> Any:
    """Return a PettingZoo environment of one world.

    A team becomes a `ParallelEnv` with `agent_0`, `agent_1` and so on. An agent observes `observation`: what
    it observes by itself (`agents.ego`) where the environment has that, else the graph and its own node
    `self`. A game of two players becomes an `AECEnv` with `player_0` and `player_1`, who both observe the
    graph. Both have `action_mask` beside the observation where actions can be illegal.

    Args:
        env: with one world, in which agents or two players act.
        illegal: `raise` refuses illegal actions; `ignore` takes random legal ones in their place.

    Raises:
        ConfigError: there is more than one world, or neither agents nor players.
    """
    if env.num_envs != 1:
        raise ConfigError(f"to_pettingzoo takes one world, got {env.num_envs}", hint="use num_envs=1")
    if env.num_agents:
        return PettingZooTeam(env, illegal=illegal)
    if "player" in env.observation_spec.keys():  # noqa: SIM118
        return PettingZooGame(env, illegal=illegal)
    raise ConfigError(f"{env.name} has one player and no agents", hint="use to_gymnasium")


class _Spaces:
    """Equal spaces of all agents, each with a random state of its own."""

    def set_spaces(self, names: list[str], observation: Any, action: Any) -> None:
        """Set the spaces of the agents."""
        self.observation_spaces = {name: deepcopy(observation) for name in names}
        self.action_spaces = {name: deepcopy(action) for name in names}

    def observation_space(self, agent: str) -> Any:
        """Return the observation space of an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Return the action space of an agent."""
        return self.action_spaces[agent]


class PettingZooTeam(_Spaces, pettingzoo.ParallelEnv):  # type: ignore[name-defined]
    """One world with a team as a `pettingzoo.ParallelEnv`; `to_pettingzoo` builds it.

    Args:
        env: with one world.
        illegal: as in `to_pettingzoo`.
    """

    def __init__(self, env: GraphEnv[Any], *, illegal: Illegal) -> None:
        self._env, self._illegal = env, illegal
        env.check_actions = illegal == "raise"
        self._root: TensorDictBase = env.fake_tensordict()
        self.metadata = {"name": env.name, "render_modes": []}
        self.possible_agents = [f"agent_{number}" for number in range(env.num_agents)]
        self.agents: list[str] = []
        example = self._observations(self._root, self.possible_agents[:1])["agent_0"]
        space = space_of(example, most_nodes=env.graph.num_nodes)
        if "self" in space["observation"].keys():  # noqa: SIM118
            space["observation"]["self"] = needed("gymnasium.spaces", "pettingzoo").Discrete(
                env.graph.num_nodes
            )
        self.set_spaces(self.possible_agents, space, action_space_of(env.action_spec, 2))
        self.render_mode = None

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Arrays, Arrays]:
        """Start an episode; returns the observations and infos of the agents that act."""
        if seed is not None:
            self._env.set_seed(seed)
        self._root = self._env.reset()
        self.agents = self._active(self._root)
        return self._observations(self._root, self.agents), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[Arrays, Arrays, Arrays, Arrays, Arrays]:
        """Take the actions of all agents that act; those that end leave `agents`."""
        acting = self.agents
        if not acting:
            raise ConfigError("step was called with no agents left", hint="call reset first")
        missing = [name for name in acting if name not in actions]
        if missing:
            raise ConfigError(f"step: no action for {', '.join(missing)}")
        root = self._root.copy()
        root["action"] = self._joint_action(actions)
        if self._illegal == "ignore":
            legal_or_replaced(root, self._env)
        stepped = self._env.step(root)
        outcome, self._root = stepped["next"], self._env.step_mdp(stepped)
        over = bool(outcome["terminated"])
        ended = outcome["agents", "terminated"][0].tolist()
        cut_off = bool(outcome["truncated"])
        rewards = outcome["reward"][0, :, 0].tolist()
        place = self._places(acting)
        self.agents = [] if over or cut_off else self._active(outcome)
        return (
            self._observations(outcome, acting),
            {name: rewards[place[name]] for name in acting},
            {name: over or ended[place[name]] for name in acting},
            {name: cut_off and not ended[place[name]] for name in acting},
            {name: {} for name in acting},
        )

    def _places(self, names: list[str]) -> dict[str, int]:
        return {name: self.possible_agents.index(name) for name in names}

    def _active(self, root: TensorDictBase) -> list[str]:
        active = root["agents", "active"][0].tolist()
        return [name for name, acts in zip(self.possible_agents, active, strict=True) if acts]

    def _joint_action(self, actions: dict[str, Any]) -> torch.Tensor:
        spec = self._env.action_spec
        joint = self._env.actions.sample(self._root, self._env.graph, generator=self._env.generator)
        for name, number in self._places(self.agents).items():
            joint[0, number] = torch.as_tensor(np.asarray(actions[name]), device=spec.device).to(spec.dtype)
        return joint

    def _observations(self, root: TensorDictBase, names: list[str]) -> Arrays:
        agents, mask = root["agents"], root.get(MASK, None)
        ego = agents.get("ego", None)
        graph = None if ego is not None else as_arrays(graph_tensors(root[GRAPH][0], self._env.graph))
        found = {}
        for name, number in self._places(names).items():
            if ego is None:
                seen = {**_copies(graph), "self": np.int64(number)}
            else:
                part = ego[0, number]
                seen = as_arrays(part if isinstance(part, torch.Tensor) else dict(part.items()))
            found[name] = {"observation": seen}
            if mask is not None:
                found[name]["action_mask"] = as_arrays(mask[0, number])
        return found


class PettingZooGame(_Spaces, pettingzoo.AECEnv):  # type: ignore[name-defined]
    """One world of a game of two players as a `pettingzoo.AECEnv`; `to_pettingzoo` builds it.

    Args:
        env: with one world.
        illegal: as in `to_pettingzoo`.
    """

    def __init__(self, env: GraphEnv[Any], *, illegal: Illegal) -> None:
        super().__init__()
        self._env, self._illegal = env, illegal
        env.check_actions = illegal == "raise"
        self._root: TensorDictBase = env.fake_tensordict()
        self.metadata = {"name": env.name, "render_modes": []}
        self.possible_agents = ["player_0", "player_1"]
        self.agents: list[str] = []
        space = space_of(self._observation(self._root), most_nodes=env.graph.num_nodes)
        self.set_spaces(self.possible_agents, space, action_space_of(env.action_spec, 1))
        self.render_mode = None

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> None:
        """Start a game."""
        if seed is not None:
            self._env.set_seed(seed)
        self._root = self._env.reset()
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {name: {} for name in self.agents}
        self.agent_selection = self._to_move()

    def observe(self, agent: str) -> Arrays:
        """Return what a player observes; only the player to move has legal actions in its mask."""
        seen = self._observation(self._root)
        if agent != self.agent_selection:
            seen["action_mask"] = np.zeros_like(seen["action_mask"])
        return seen

    def step(self, action: Any) -> None:
        """Move; the reward of the mover is minus that of the other."""
        mover = self.agent_selection
        if self.terminations[mover] or self.truncations[mover]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[mover] = 0.0
        root, spec = self._root.copy(), self._env.action_spec
        root["action"] = (
            torch.as_tensor(np.asarray(action), device=spec.device).to(spec.dtype).reshape(spec.shape)
        )
        if self._illegal == "ignore":
            legal_or_replaced(root, self._env)
        stepped = self._env.step(root)
        outcome, self._root = stepped["next"], self._env.step_mdp(stepped)
        reward = float(outcome["reward"])
        self.rewards = {name: reward if name == mover else -reward for name in self.agents}
        self.terminations = dict.fromkeys(self.agents, bool(outcome["terminated"]))
        self.truncations = dict.fromkeys(self.agents, bool(outcome["truncated"]))
        self._accumulate_rewards()
        is_over = bool(outcome["done"])
        other = next(name for name in self.possible_agents if name != mover)
        self.agent_selection = other if is_over else self._to_move()

    def _to_move(self) -> str:
        return self.possible_agents[int(self._root["player"])]

    def _observation(self, root: TensorDictBase) -> Arrays:
        shown = first_world(observation_of(root, self._env))
        mask = shown.pop(MASK)
        return {"observation": shown, "action_mask": mask}


def _copies(value: Any) -> Any:
    return {name: part.copy() for name, part in value.items()}
