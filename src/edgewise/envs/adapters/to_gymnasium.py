"""A graph environment as a Gymnasium environment: one world as `Env`, several as `VectorEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.envs.adapters.outside_view import (
    Arrays,
    actions_from,
    arrays,
    first_world,
    legal_or_replaced,
    needed,
    observation_of,
    space_of,
    world_action_space,
)
from edgewise.envs.base import GraphEnv
from edgewise.plugins import load

gymnasium = needed("gymnasium", "gymnasium")

Illegal = Literal["raise", "ignore"]
FRAME = "edgewise.experiments.frames:newest_frame"
"""What draws a world; an address, since it is above the environments."""
FPS = 4


def to_gymnasium(
    env: GraphEnv[Any],
    *,
    illegal: Illegal = "raise",
    graphs: Literal["dict", "space"] = "dict",
    render_mode: Literal["rgb_array"] | None = None,
) -> Any:
    """Return a Gymnasium environment that steps the worlds of a graph environment.

    Observations are dicts of padded arrays: `graph` with `x`, `node_mask`, `edge_index`, `edge_mask` and so
    on, `action_mask` if there is one, `player` in games. Where agents act, the caller acts for the whole team
    and the reward is the sum over its agents; `to_pettingzoo` gives each agent its own. In a game of two
    players, the caller moves for both, and the reward is in the view of the player who moved. `info` has the
    action mask, and the metrics of an episode at its end.

    Args:
        env: one world gives a `gymnasium.Env`, several give a `gymnasium.vector.VectorEnv` that resets worlds
            in the step in which they end, with `final_obs` and `final_info`.
        illegal: `raise` refuses illegal actions. `ignore` takes a random legal action in place of an illegal
            one and says so in `info["illegal"]`, for callers that sample without masks.
        graphs: `dict` for padded arrays; `space` for `gymnasium.spaces.Graph` without padding, of one world.
        render_mode: `rgb_array` for pictures by `render()`, of one world; needs Pillow.

    Example:
        >>> world = to_gymnasium(make_env("graphwalk"))
        >>> observation, info = world.reset(seed=0)
        >>> info["action_mask"].sum() > 0
        np.True_
    """
    if illegal not in ("raise", "ignore"):
        raise ConfigError(f"to_gymnasium: illegal is {illegal!r}, expected 'raise' or 'ignore'")
    if graphs not in ("dict", "space"):
        raise ConfigError(f"to_gymnasium: graphs is {graphs!r}, expected 'dict' or 'space'")
    if render_mode not in (None, "rgb_array"):
        raise ConfigError(f"to_gymnasium: render_mode is {render_mode!r}, expected 'rgb_array' or None")
    if env.num_envs == 1:
        return GymnasiumWorld(env, illegal=illegal, graphs=graphs, render_mode=render_mode)
    if render_mode is not None:
        raise ConfigError("to_gymnasium: render_mode takes one world", hint="build it with num_envs=1")
    if graphs == "space":
        raise ConfigError("to_gymnasium: graphs='space' takes one world", hint="build it with num_envs=1")
    return GymnasiumWorlds(env, illegal=illegal)


class _Stepper:
    """Holds the current root of the worlds and steps it with arrays."""

    def __init__(self, env: GraphEnv[Any], illegal: Illegal) -> None:
        self.env, self.illegal = env, illegal
        env.check_actions = illegal == "raise"
        self.root: TensorDictBase | None = None

    def reset(self, seed: int | None) -> TensorDictBase:
        if seed is not None:
            self.env.set_seed(seed)
        self.root = self.env.reset()
        return self.root

    def step(self, action: Any) -> tuple[TensorDictBase, np.ndarray]:
        """Return the outcome under `next`, and which worlds had an illegal action replaced."""
        if self.root is None:
            raise ConfigError("step was called before reset")
        root = self.root.copy()
        root["action"] = actions_from(action, self.env)
        replaced = np.zeros(self.env.num_envs, dtype=bool)
        if self.illegal == "ignore":
            replaced = legal_or_replaced(root, self.env).cpu().numpy()
        stepped = self.env.step(root)
        self.root = self.env.step_mdp(stepped)
        return stepped["next"], replaced

    def rewards(self, outcome: TensorDictBase) -> np.ndarray:
        """Return the reward of each world, summed over agents, `[B]` float64."""
        reward = outcome["reward"].detach().cpu().double()
        return reward.reshape(self.env.num_envs, -1).sum(-1).numpy()


def _flags(outcome: TensorDictBase, name: str) -> np.ndarray:
    return outcome[name].squeeze(-1).cpu().numpy()


def _metrics(root: TensorDictBase) -> dict[str, np.ndarray]:
    metrics = root.get("metrics", None)
    return {} if metrics is None else {name: value.cpu().numpy() for name, value in metrics.items()}


class GymnasiumWorld(gymnasium.Env):  # type: ignore[name-defined]
    """One world as a `gymnasium.Env`; `to_gymnasium` builds it.

    Args:
        env: with one world.
        illegal: as in `to_gymnasium`.
        graphs: as in `to_gymnasium`.
        render_mode: as in `to_gymnasium`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": FPS}

    def __init__(
        self, env: GraphEnv[Any], *, illegal: Illegal, graphs: str, render_mode: str | None = None
    ) -> None:
        self._stepper, self._graphs = _Stepper(env, illegal), graphs
        self._states: list[TensorDictBase] = []
        self._is_done = False
        example = first_world(observation_of(env.fake_tensordict(), env))
        space = space_of(example, most_nodes=env.graph.num_nodes)
        if graphs == "space":
            space["graph"] = _graph_space(example["graph"])
        self.observation_space = space
        self.action_space = world_action_space(env)
        self.render_mode = render_mode

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Arrays, Arrays]:
        """Start an episode; returns the observation and `info`."""
        super().reset(seed=seed)
        root = self._stepper.reset(seed)
        self._is_done = False
        self._states.clear()
        self._remember(root)
        return self._observation(root), self._info(root)

    def step(self, action: Any) -> tuple[Arrays, float, bool, bool, Arrays]:
        """Take an action; returns observation, reward, terminated, truncated and `info`."""
        if self._is_done:
            raise ConfigError("step was called after the end of an episode", hint="call reset first")
        outcome, replaced = self._stepper.step(_batch_of_one(action))
        self._remember(outcome)
        terminated, truncated = bool(_flags(outcome, "terminated")[0]), bool(_flags(outcome, "truncated")[0])
        self._is_done = terminated or truncated
        info = self._info(outcome)
        if self._stepper.illegal == "ignore":
            info["illegal"] = bool(replaced[0])
        if self._is_done:
            info["metrics"] = {name: value[0] for name, value in _metrics(outcome).items()}
        reward = float(self._stepper.rewards(outcome)[0])
        return self._observation(outcome), reward, terminated, truncated, info

    def render(self) -> Any:
        """Return the current moment as pixels `[height, width, 3]`; None without a `render_mode`."""
        if self.render_mode is None:
            return None
        if not self._states:
            raise ConfigError("render was called before reset")
        return load(FRAME)(self._stepper.env, self._states)

    def _remember(self, root: TensorDictBase) -> None:
        if self.render_mode is not None:
            self._states.append(root["state"].clone())

    def _observation(self, root: TensorDictBase) -> Arrays:
        found: Arrays = first_world(observation_of(root, self._stepper.env))
        if self._graphs == "space":
            found["graph"] = _graph_instance(found["graph"])
        return found

    def _info(self, root: TensorDictBase) -> Arrays:
        mask = root.get("action_mask", None)
        return {} if mask is None else {"action_mask": first_world(arrays(mask))}


def _batch_of_one(action: Any) -> Any:
    """Return the action of one world as a batch."""
    if isinstance(action, Mapping):
        return {name: np.asarray(value)[None] for name, value in action.items()}
    return np.asarray(action)[None]


def _graph_space(graph: Arrays) -> Any:
    """Return the space of graphs; an edge without features is the one member of `Discrete(1)`."""
    spaces, features = gymnasium.spaces, graph.get("edge_attr")
    node = spaces.Box(-np.inf, np.inf, graph["x"].shape[-1:])
    edge = spaces.Discrete(1) if features is None else spaces.Box(-np.inf, np.inf, features.shape[-1:])
    return spaces.Graph(node_space=node, edge_space=edge)


def _graph_instance(graph: Arrays) -> Any:
    """Return a graph without padding: nodes are numbered among those that exist."""
    nodes, edges = graph["node_mask"].astype(bool), graph["edge_mask"].astype(bool)
    number = np.cumsum(nodes) - 1
    features = graph.get("edge_attr")
    return gymnasium.spaces.GraphInstance(
        nodes=graph["x"][nodes],
        edges=np.zeros(edges.sum(), dtype=np.int64) if features is None else features[edges],
        edge_links=number[graph["edge_index"][:, edges]].T.astype(np.int64),
    )


class GymnasiumWorlds(gymnasium.vector.VectorEnv):  # type: ignore[name-defined]
    """Several worlds as a `gymnasium.vector.VectorEnv`; `to_gymnasium` builds it.

    Args:
        env: with any number of worlds.
        illegal: as in `to_gymnasium`.
    """

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}

    def __init__(self, env: GraphEnv[Any], *, illegal: Illegal) -> None:
        self._stepper = _Stepper(env, illegal)
        self.num_envs = env.num_envs
        example = first_world(observation_of(env.fake_tensordict(), env))
        self.single_observation_space = space_of(example, most_nodes=env.graph.num_nodes)
        self.single_action_space = world_action_space(env)
        batch_space = needed("gymnasium.vector.utils", "gymnasium").batch_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Arrays, Arrays]:
        """Start an episode in every world; returns the observations and `info`."""
        super().reset(seed=seed)
        root = self._stepper.reset(seed)
        return observation_of(root, self._stepper.env), self._info(root)

    def step(self, actions: Any) -> tuple[Arrays, np.ndarray, np.ndarray, np.ndarray, Arrays]:
        """Take an action in every world; worlds that end are reset in the same step."""
        outcome, replaced = self._stepper.step(actions)
        terminated, truncated = _flags(outcome, "terminated"), _flags(outcome, "truncated")
        done = terminated | truncated
        env, ended = self._stepper.env, {}
        if done.any():
            ended = {
                "final_obs": observation_of(outcome, env),
                "_final_obs": done,
                "final_info": {"metrics": _metrics(outcome), **self._info(outcome)},
                "_final_info": done,
            }
            self._stepper.root = env.maybe_reset(self._stepper.root)
        info = {**self._info(self._stepper.root), **ended}
        if self._stepper.illegal == "ignore":
            info["illegal"] = replaced
        rewards = self._stepper.rewards(outcome)
        return observation_of(self._stepper.root, env), rewards, terminated, truncated, info

    def _info(self, root: TensorDictBase | None) -> Arrays:
        mask = None if root is None else root.get("action_mask", None)
        return {} if mask is None else {"action_mask": arrays(mask)}
