"""PettingZoo's parallel environments as graph environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.adapters.foreign import Foreign, ForeignEnv, Shown, define
from edgewise.envs.adapters.outside_view import is_bounded_box, needed, scaled_to
from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete

View = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def from_pettingzoo(
    source: Callable[[], Any], *, graph: View | None = None, name: str | None = None
) -> type[ForeignEnv]:
    """Return a graph environment whose worlds are instances of PettingZoo's `ParallelEnv`.

    Every possible agent is a node, in the order of `possible_agents`; its features are its flattened
    observation, padded to the longest. All agents are linked with each other, unless `graph` says otherwise.
    Agents that leave stop acting; rewards are per agent. A mask is read from the entry `action_mask` of an
    agent's observation or of its info.

    Args:
        source: function that builds the environment.
        graph: function from the observations by agent to arrays `x [n, F]`, `edge_index [2, e]` and so on.
            Its first nodes are the possible agents.
        name: of the class; by default it is made from the function's name.

    Raises:
        ConfigError: pettingzoo is not installed, or the action spaces of agents differ.
    """
    needed("pettingzoo", "pettingzoo")
    spaces = needed("gymnasium.spaces", "pettingzoo")
    source = _parallel(source)
    example = source()
    names = list(getattr(example, "possible_agents", ()))
    if not names:
        raise ConfigError("from_pettingzoo takes a ParallelEnv with possible_agents")
    to_action, layout = _actions(spaces, [example.action_space(agent) for agent in names])
    seen = {agent: _without_mask(spaces, example.observation_space(agent)) for agent in names}
    observations, infos = example.reset(seed=0)
    has_mask = _masks(observations, infos, names[:1])[0] is not None
    example.close()
    view = graph or _complete_graph(spaces, names, seen)
    title = name or str(getattr(source, "__name__", "Team")).title().replace("_", "")
    return define(
        title,
        Foreign(lambda: _Team(source(), names, view, to_action, has_mask), lambda _: layout),
        summary=f"Worlds of the PettingZoo environment {title}.",
    )


def _parallel(source: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that builds a parallel environment; one of turns (AEC) is converted if it can be.

    Raises:
        ConfigError: agents take turns, and several cannot act at once.
    """
    example = source()
    is_turns = hasattr(example, "agent_iter")
    can_be = bool(getattr(example, "metadata", {}).get("is_parallelizable", False))
    example.close()
    if not is_turns:
        return source
    if not can_be:
        raise ConfigError(
            "from_pettingzoo: this is an AEC environment, in which agents act in turn, and it does not say "
            "that they may act at once",
            hint="set metadata['is_parallelizable'] if they may; a game of two players is an ew.GraphEnv "
            "that observes `player`",
        )
    convert = needed("pettingzoo.utils.conversions", "pettingzoo").aec_to_parallel
    return lambda: convert(source())


class _Team:
    """One parallel environment that shows graphs."""

    def __init__(
        self, env: Any, names: list[str], view: View, to_action: Callable[[Tensor], Any], has_mask: bool
    ) -> None:
        self._env, self._names, self._view, self._to_action = env, names, view, to_action
        self._has_mask = has_mask

    def reset(self, seed: int) -> Shown:
        observations, infos = self._env.reset(seed=seed)
        self._last, self._infos = dict(observations), dict(infos)
        return self._shown()

    def step(self, action: Tensor) -> Shown:
        acting = list(self._env.agents)
        place = {name: number for number, name in enumerate(self._names)}
        joint = {name: self._to_action(action[place[name]]) for name in acting}
        observations, rewards, terminated, truncated, infos = self._env.step(joint)
        self._last.update(observations)
        self._infos.update(infos)
        is_over = not self._env.agents
        was_cut = is_over and any(truncated.values()) and not all(terminated.values())
        return self._shown(
            reward=np.array([float(rewards.get(name, 0.0)) for name in self._names]),
            terminated=is_over and not was_cut,
            truncated=was_cut,
            active=None if is_over else np.array([name in self._env.agents for name in self._names]),
        )

    def _shown(self, **outcome: Any) -> Shown:
        masks = _masks(self._last, self._infos, self._names) if self._has_mask else None
        plain = {name: _without_entry(value) for name, value in self._last.items()}
        return Shown(self._view(plain), None if masks is None else np.stack(masks), **outcome)


def _without_entry(value: Any) -> Any:
    """Return the observation proper, without the mask beside it."""
    if isinstance(value, Mapping) and "action_mask" in value:
        rest = {name: part for name, part in value.items() if name != "action_mask"}
        return next(iter(rest.values())) if len(rest) == 1 else rest
    return value


def _without_mask(spaces: Any, space: Any) -> Any:
    if isinstance(space, spaces.Dict) and "action_mask" in space.spaces:
        rest = {name: part for name, part in space.spaces.items() if name != "action_mask"}
        return next(iter(rest.values())) if len(rest) == 1 else spaces.Dict(rest)
    return space


def _masks(observations: Mapping[str, Any], infos: Mapping[str, Any], names: list[str]) -> list[Any]:
    found = []
    for name in names:
        observation, info = observations.get(name), infos.get(name, {})
        mask = observation.get("action_mask") if isinstance(observation, Mapping) else None
        mask = info.get("action_mask", mask)
        found.append(None if mask is None else np.asarray(mask, bool))
    return found


def _complete_graph(spaces: Any, names: list[str], seen: Mapping[str, Any]) -> View:
    width = max(spaces.flatdim(space) for space in seen.values())
    pairs = [(one, other) for one in range(len(names)) for other in range(len(names)) if one != other]
    links = np.array(pairs, np.int64).reshape(-1, 2).T

    def view(observations: Mapping[str, Any]) -> dict[str, Any]:
        x = np.zeros((len(names), width), np.float32)
        for number, name in enumerate(names):
            if name in observations:
                flat = np.asarray(spaces.flatten(seen[name], observations[name]), np.float32)
                x[number, : len(flat)] = flat
        return {"x": x, "edge_index": links}

    return view


def _actions(spaces: Any, found: list[Any]) -> tuple[Callable[[Tensor], Any], ActionLayout]:
    first = found[0]
    if any(space != first for space in found):
        raise ConfigError("from_pettingzoo: agents have different action spaces, and one policy acts for all")
    if isinstance(first, spaces.Discrete):
        start = int(first.start)
        return lambda action: start + int(action), AgentsDiscrete(len(found), int(first.n))
    if is_bounded_box(first):
        return scaled_to(first), AgentsContinuous(len(found), int(np.prod(first.shape)))
    raise ConfigError(
        f"from_pettingzoo: actions of {first} do not fit", hint="use Discrete or bounded Box actions"
    )
