"""The base of environments that step simulators of other libraries, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.config.model import Config
from edgewise.envs.adapters.episodes import Episodes, Simulator
from edgewise.envs.base import GraphEnv, Transition
from edgewise.envs.entries import Entries
from edgewise.graphs.actions import ActionLayout, ComposedLayout
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec

GRAPH_NAMES = ("x", "edge_index", "edge_attr", "pos", "node_mask", "u")
"""Arrays of a graph that a simulator may show."""
SEEDS = 2**31 - 1
"""Seeds of foreign episodes are below this number; some simulators take no larger ones."""


class ForeignConfig(Config):
    """Settings of an environment that steps simulators of another library; it has none of its own."""


class Shown(NamedTuple):
    """What a simulator shows after a reset or a step.

    Attributes:
        graph: arrays `x [n, F]`, `edge_index [2, e]` and, where there are any, `edge_attr [e, D]`,
            `pos [n, P]`, `node_mask [n]` and `u [G]`.
        mask: legal actions in the mask shape of the layout; None if all are.
        reward: of the step, one number or one per agent.
        terminated: whether the episode ended.
        truncated: whether the episode was cut off.
        active: `[A]` bool, agents that still act; None if all do.
    """

    graph: Mapping[str, Any]
    mask: Any = None
    reward: Any = 0.0
    terminated: bool = False
    truncated: bool = False
    active: Any = None


@dataclass(frozen=True)
class Foreign:
    """How a kind of simulator is built and acted on.

    Args:
        make: builds a simulator that shows graphs.
        layout: builds the action layout from the number of node slots.
        max_nodes: node slots; None for as many as the first graph has.
        max_edges: edge slots; None for as many as the first graph has.
    """

    make: Callable[[], Simulator[Shown]]
    layout: Callable[[int], ActionLayout]
    max_nodes: int | None = None
    max_edges: int | None = None


@dataclass
class _Room:
    """Slots for graphs of any smaller size."""

    nodes: int
    edges: int
    widths: dict[str, int] = field(default_factory=dict)


class ForeignEnv(GraphEnv[ForeignConfig]):
    """Worlds that are simulators of another library; `from_gymnasium` and `from_pettingzoo` build subclasses.

    Worlds step one after the other, in this process. A world is a function of its seed and its actions if its
    simulator is, so runs resume bit for bit; resuming repeats the actions of the running episodes.

    Attributes:
        foreign: set by subclasses.
    """

    foreign: ClassVar[Foreign]

    def setup(self) -> None:
        """Measure the first graph, and set the shapes."""
        self._episodes: Episodes[Shown] = Episodes(self.foreign.make, capacity=max(64, 4 * self.num_envs))
        number, shown = self._episodes.start(0)
        self._episodes.end(number)
        self._room = _room(shown, self.foreign)
        widths = self._room.widths
        self.graph = GraphSpec(
            self._room.nodes,
            widths["x"],
            edges=Explicit(self._room.edges, widths.get("edge_attr", 0)),
            position_dim=widths.get("pos", 0),
            graph_features=widths.get("u", 0),
        )
        self.actions = self.foreign.layout(self._room.nodes)
        self._has_mask = shown.mask is not None

    def spawn(self, count: int) -> Entries:
        """Start an episode in each world, seeded by the environment's generator."""
        seeds = torch.randint(SEEDS, (count,), generator=self.generator, device=self.device).tolist()
        return {
            **self._state([self._episodes.start(seed) for seed in seeds]),
            "seed": self._stack(seeds, torch.int64),
        }

    def advance(self, state: TensorDict, action: Any) -> Transition:
        """Step the simulator of each world."""
        if isinstance(self.actions, ComposedLayout):
            action = self.actions.pack(**action) if isinstance(action, dict) else self.actions.pack(action)
        names = ("episode", "seed", "step", "over")
        kept = action.to("cpu", copy=True).unbind(0)
        rows = zip(*(state[name].tolist() for name in names), kept, strict=True)
        results: list[tuple[int, Shown | None]] = [
            (number, None) if is_over else self._episodes.step(number, seed, step, each)
            for number, seed, step, is_over, each in rows
        ]
        shown = [Shown({}, terminated=True) if each is None else each for _, each in results]
        for number, each in results:
            if each is not None and (each.terminated or each.truncated):
                self._episodes.end(number)
        return Transition(
            self._state(results, before=state),
            reward=self._rewards(shown),
            terminated=self._stack([each.terminated for each in shown], torch.bool),
            agents_terminated=self._ended(shown),
            truncated=self._stack([each.truncated and not each.terminated for each in shown], torch.bool),
        )

    def observe(self, state: TensorDict) -> Entries:
        """Return the graphs that the simulators showed."""
        return {"graph": dict(state["shown"].items())}

    def mask(self, state: TensorDict) -> Tensor | None:
        """Return the masks that the simulators gave, if they give any."""
        return state["legal"] if self._has_mask else None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator and the seeds and actions of the running episodes."""
        return {**super().state_dict(), "episodes": self._episodes.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Restore `state_dict`; simulators repeat the actions of their episodes."""
        super().load_state_dict(state, strict=strict)
        if strict:
            self._episodes.load_state_dict(state["episodes"], dtype=self.action_spec.dtype)

    def _state(self, results: list[tuple[int, Shown | None]], before: TensorDict | None = None) -> Entries:
        """Return the state after a reset or a step; worlds that show nothing stay as they were before."""
        arrays = self._slots(len(results))
        for place, (_, shown) in enumerate(results):
            if shown is not None:
                self._write(shown, arrays, place)
                continue
            assert before is not None
            for name, array in arrays.items():
                array[place] = (before if name == "legal" else before["shown"])[name][place].cpu().numpy()
        tensors = {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}
        legal = {"legal": tensors.pop("legal")} if self._has_mask else {}
        over = [shown is None or shown.terminated or shown.truncated for _, shown in results]
        return {
            "episode": self._stack([number for number, _ in results], torch.int64),
            "over": self._stack(over, torch.bool),
            "shown": tensors,
            **legal,
        }

    def _rewards(self, shown: list[Shown]) -> Tensor:
        """Return the rewards `[B]`, or `[B, A]` if agents act; one number is that of every agent."""
        if not self.num_agents:
            return self._stack([each.reward for each in shown], torch.float32)
        rewards = np.empty((len(shown), self.num_agents), np.float32)
        for row, each in zip(rewards, shown, strict=True):
            row[:] = each.reward
        return torch.from_numpy(rewards).to(self.device)

    def _ended(self, shown: list[Shown]) -> Tensor | None:
        """Return the agents that no longer act, `[B, A]` bool; None if agents end with their world."""
        if not self.num_agents or all(each.active is None for each in shown):
            return None
        everyone = np.ones(self.num_agents, dtype=bool)
        return ~self._stack([everyone if each.active is None else each.active for each in shown], torch.bool)

    def _stack(self, values: list[Any], dtype: torch.dtype) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=dtype, device=self.device)

    def _slots(self, count: int) -> dict[str, np.ndarray]:
        """Return empty graphs of `count` worlds, and their masks if simulators give any."""
        nodes, edges, widths = self._room.nodes, self._room.edges, self._room.widths
        found = {
            "x": np.zeros((count, nodes, widths["x"]), np.float32),
            "node_mask": np.zeros((count, nodes), bool),
            "edge_index": np.zeros((count, 2, edges), np.int64),
            "edge_mask": np.zeros((count, edges), bool),
        }
        shapes: dict[str, tuple[int, ...]] = {"edge_attr": (edges,), "pos": (nodes,), "u": ()}
        for name, shape in shapes.items():
            if name in widths:
                found[name] = np.zeros((count, *shape, widths[name]), np.float32)
        if self._has_mask:
            legal = self.actions.mask_shape(self.graph, num_edges=edges)
            found["legal"] = np.zeros((count, *legal), bool)
        return found

    def _write(self, shown: Shown, arrays: dict[str, np.ndarray], place: int) -> None:
        """Write the graph of one world into the slots of its place."""
        room, graph = self._room, shown.graph
        x, index, exists = graph["x"], graph.get("edge_index"), graph.get("node_mask")
        nodes, links = len(x), 0
        if index is not None:
            index = np.asarray(index, np.int64).reshape(2, -1)
            links = index.shape[1]
        if nodes > room.nodes or links > room.edges:
            raise ConfigError(
                f"{type(self).__name__}: a graph has {nodes} nodes and {links} edges, and there is room for "
                f"{room.nodes} and {room.edges}",
                hint="give max_nodes and max_edges",
            )
        if np.shape(x)[1:] != (room.widths["x"],):
            raise ConfigError(
                f"{type(self).__name__}: node features have shape {list(np.shape(x))}, and the first graph "
                f"had {room.widths['x']} features"
            )
        arrays["x"][place, :nodes] = x
        arrays["node_mask"][place, :nodes] = True if exists is None else exists
        if links:
            arrays["edge_index"][place, :, :links] = index
            arrays["edge_mask"][place, :links] = True
        for name in ("edge_attr", "pos", "u"):
            if name in room.widths:
                given = np.asarray(graph[name], np.float32).reshape(-1, room.widths[name])
                if name == "u":
                    arrays[name][place] = given[0]
                else:
                    arrays[name][place, : len(given)] = given
        if shown.mask is not None:
            mask = np.asarray(shown.mask, bool)
            arrays["legal"][place][tuple(slice(0, size) for size in mask.shape)] = mask


def _edge_index(graph: Mapping[str, Any]) -> np.ndarray:
    edges = graph.get("edge_index")
    return np.zeros((2, 0), np.int64) if edges is None else np.asarray(edges, np.int64).reshape(2, -1)


def _room(shown: Shown, foreign: Foreign) -> _Room:
    x = np.asarray(shown.graph["x"])
    if x.ndim != 2:
        raise ConfigError(
            f"the node features x must be an array [nodes, features], got shape {list(x.shape)}"
        )
    unknown = [name for name in shown.graph if name not in GRAPH_NAMES]
    if unknown:
        raise ConfigError(
            f"the graph has an entry {unknown[0]}, which is none of {', '.join(GRAPH_NAMES)}",
            hint="append it to x, edge_attr or u",
        )
    widths = {"x": x.shape[1]}
    if shown.graph.get("u") is not None:
        widths["u"] = np.asarray(shown.graph["u"]).size
    for name in ("edge_attr", "pos"):
        if shown.graph.get(name) is not None:
            widths[name] = np.asarray(shown.graph[name]).shape[-1]
    links = _edge_index(shown.graph).shape[1]
    nodes, edges = foreign.max_nodes, foreign.max_edges
    return _Room(len(x) if nodes is None else nodes, links if edges is None else edges, widths)


def define(name: str, foreign: Foreign, *, summary: str, depth: int = 2) -> type[ForeignEnv]:
    """Return a subclass of `ForeignEnv`, defined in the module of the caller's caller."""
    module = sys._getframe(depth).f_globals.get("__name__", __name__)
    members = {"foreign": foreign, "__doc__": summary, "__module__": module, "__qualname__": name}
    return type(name, (ForeignEnv,), members)
