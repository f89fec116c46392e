"""Gymnasium environments as graph environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.adapters.composed_spaces import composed_actions
from edgewise.envs.adapters.foreign import GRAPH_NAMES, Foreign, ForeignEnv, Shown, define
from edgewise.envs.adapters.outside_view import is_bounded_box, needed, scaled_to
from edgewise.graphs.actions import (
    ActionLayout,
    AgentsContinuous,
    AgentsDiscrete,
    ChooseNode,
    ComposedLayout,
)

View = Callable[[Any], Mapping[str, Any]]


def from_gymnasium(
    source: str | Callable[[], Any],
    *,
    graph: View | Mapping[str, str] | None = None,
    choose: str | None = None,
    max_nodes: int | None = None,
    max_edges: int | None = None,
    name: str | None = None,
    **settings: Any,
) -> type[ForeignEnv]:
    """Return a graph environment whose worlds are Gymnasium environments.

    The result is a class like any other environment: `ew.train(from_gymnasium("CartPole-v1"))`. Or assign it
    to its name in a file, `CartPole = ew.from_gymnasium("CartPole-v1", name="CartPole")`, and run
    `edgewise train file.py:CartPole`. Observations become graphs:

    | observation space | graph |
    |---|---|
    | `Graph` | its nodes and edges |
    | `Dict` with the names `x`, `edge_index`, `edge_attr`, `pos`, `node_mask`, `u` | these arrays |
    | `Box` and whatever else `flatten` takes | one node with the flattened observation |

    Actions are `Box` or `Discrete`. They belong to node 0, unless `choose` says that a number is a node.
    `MultiDiscrete`, `MultiBinary`, `Dict` and `Tuple` become a composed action of the whole graph.
    A mask is read from `info["action_mask"]` or from the entry `action_mask` of the observation.

    Args:
        source: id of a registered environment, or a function that builds one.
        graph: function from an observation to arrays by the names above, or these names with the names of
            entries of a `Dict` observation; None for the table.
        choose: `"node"` if an action is the number of a node; None if it belongs to node 0.
        max_nodes: node slots; None for as many as the first observation has.
        max_edges: edge slots; None for as many as the first observation has.
        name: of the class; by default it is made from the id or the function's name.
        settings: passed on to `gymnasium.make`.

    Raises:
        ConfigError: gymnasium is not installed, there is no such environment, or its spaces do not fit.
    """
    gymnasium = needed("gymnasium", "gymnasium")
    make = _factory(gymnasium, source, settings)
    example = make()
    view = _view(gymnasium, example.observation_space, graph)
    to_action, layout = _actions(gymnasium, example.action_space, choose)
    example.close()
    named = name or _class_name(source)
    has_mask = _gives_masks(make)
    if has_mask and isinstance(layout(1), ComposedLayout):
        raise ConfigError(
            f"from_gymnasium: {named} gives an action_mask, which cannot be read for {example.action_space}",
            hint="drop it with a wrapper, or write the environment as an ew.GraphEnv with `mask`",
        )
    return define(
        named,
        Foreign(lambda: _World(make(), view, to_action, has_mask, choose), layout, max_nodes, max_edges),
        summary=f"Worlds of the Gymnasium environment {_shown_name(source)}.",
    )


class _World:
    """One Gymnasium environment that shows graphs."""

    def __init__(
        self, env: Any, view: View, to_action: Callable[[Tensor], Any], has_mask: bool, choose: str | None
    ) -> None:
        self._env, self._view, self._to_action = env, view, to_action
        self._has_mask, self._choose = has_mask, choose

    def reset(self, seed: int) -> Shown:
        observation, info = self._env.reset(seed=seed)
        # Sampling from the space inside an environment must not depend on earlier episodes.
        self._env.action_space.seed(seed)
        return Shown(self._view(observation), self._mask(observation, info))

    def step(self, action: Tensor) -> Shown:
        observation, reward, terminated, truncated, info = self._env.step(self._to_action(action))
        return Shown(
            self._view(observation),
            self._mask(observation, info),
            reward=float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated),
        )

    def _mask(self, observation: Any, info: Mapping[str, Any]) -> Any:
        if not self._has_mask:
            return None
        mask = np.asarray(_mask_in(observation, info), dtype=bool)
        return mask if self._choose == "node" else mask[None]


def _mask_in(observation: Any, info: Mapping[str, Any]) -> Any:
    if "action_mask" in info:
        return info["action_mask"]
    return observation.get("action_mask") if isinstance(observation, dict) else None


def _gives_masks(make: Callable[[], Any]) -> bool:
    env = make()
    has_mask = _mask_in(*env.reset(seed=0)) is not None
    env.close()
    return has_mask


def _factory(gymnasium: Any, source: str | Callable[[], Any], settings: dict[str, Any]) -> Callable[[], Any]:
    if callable(source):
        if settings:
            raise ConfigError(
                f"from_gymnasium: {', '.join(settings)} would not be used: a function builds the environment"
            )
        return source
    try:
        gymnasium.spec(source)
    except gymnasium.error.Error as error:
        raise ConfigError(f"from_gymnasium: {error}", hint="register it first, or give a function") from error
    return lambda: gymnasium.make(source, **settings)


def _view(gymnasium: Any, space: Any, graph: View | Mapping[str, str] | None) -> View:
    spaces = gymnasium.spaces
    if callable(graph):
        return graph
    if isinstance(graph, Mapping):
        return _by_names(space, graph)
    if isinstance(space, spaces.Graph):
        return _graph_instance
    if isinstance(space, spaces.Dict) and "x" in space.spaces:
        return _by_names(space, {name: name for name in GRAPH_NAMES if name in space.spaces})
    try:
        spaces.flatdim(space)
    except (NotImplementedError, ValueError) as error:
        raise ConfigError(
            f"from_gymnasium: observations of {type(space).__name__} have no fixed size",
            hint="give graph=, a function from an observation to arrays x, edge_index and so on",
        ) from error
    if isinstance(space, spaces.Box):
        return lambda observation: {"x": np.asarray(observation, np.float32).reshape(1, -1)}
    return lambda observation: {"x": np.asarray(spaces.flatten(space, observation), np.float32)[None]}


def _by_names(space: Any, names: Mapping[str, str]) -> View:
    known = getattr(space, "spaces", None)
    if not isinstance(known, Mapping):
        raise ConfigError(
            f"from_gymnasium: graph= gives names of entries, and observations are {type(space).__name__}",
            hint="give a function instead",
        )
    wrong = [name for name in names if name not in GRAPH_NAMES]
    absent = [entry for entry in names.values() if entry not in known]
    if wrong or absent or "x" not in names:
        problem = (
            f"{wrong[0]} is none of {', '.join(GRAPH_NAMES)}"
            if wrong
            else f"observations have no entry {absent[0]}; they have {', '.join(known)}"
            if absent
            else "x, the node features, is missing"
        )
        raise ConfigError(f"from_gymnasium: graph=: {problem}")
    return lambda observation: {name: observation[entry] for name, entry in names.items()}


def _graph_instance(observation: Any) -> dict[str, Any]:
    nodes = np.asarray(observation.nodes, np.float32)
    found: dict[str, Any] = {"x": nodes.reshape(len(nodes), -1)}
    if observation.edge_links is not None:
        found["edge_index"] = np.asarray(observation.edge_links, np.int64).reshape(-1, 2).T
    if observation.edges is not None and len(observation.edges):
        found["edge_attr"] = np.asarray(observation.edges, np.float32).reshape(len(observation.edges), -1)
    return found


def _actions(
    gymnasium: Any, space: Any, choose: str | None
) -> tuple[Callable[[Tensor], Any], Callable[[int], ActionLayout]]:
    """Return how an action of a world becomes one of the space, and the layout for a number of node slots."""
    spaces = gymnasium.spaces
    if choose not in (None, "node"):
        raise ConfigError(f"from_gymnasium: choose is {choose!r}, expected 'node' or None")
    if isinstance(space, spaces.Discrete):
        first, count = int(space.start), int(space.n)
        if choose == "node":
            return lambda action: first + int(action), lambda _: ChooseNode()
        return lambda action: first + int(action), lambda _: AgentsDiscrete(1, count)
    if choose == "node":
        raise ConfigError(f"from_gymnasium: choose='node' needs Discrete actions, got {type(space).__name__}")
    if is_bounded_box(space):
        return scaled_to(space), lambda _: AgentsContinuous(1, int(np.prod(space.shape)))
    to_action, layout = composed_actions(space)
    return to_action, lambda _: layout


def _class_name(source: str | Callable[[], Any]) -> str:
    text = source.rpartition("/")[2].partition("-v")[0] if isinstance(source, str) else _shown_name(source)
    return "".join(part.capitalize() if part.islower() else part for part in _words(text)) or "Foreign"


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text).split()


def _shown_name(source: str | Callable[[], Any]) -> str:
    return source if isinstance(source, str) else str(getattr(source, "__name__", "Foreign"))
