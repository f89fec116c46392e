"""What a world looks like outside of edgewise: arrays by name, and the Gymnasium spaces that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Binary, Bounded, Categorical, TensorSpec

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.graphs.actions import ComposedLayout
from edgewise.graphs.actions.parts import Part
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec

Arrays = dict[str, Any]
"""Arrays by name, nested."""


def needed(module: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    Raises:
        ConfigError: it is not installed; the message names the extra that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ConfigError(
            f"{package} is not installed", hint=f"install it with pip install 'edgewise[{extra}]'"
        ) from error


def graph_tensors(graph: TensorDictBase, spec: GraphSpec) -> dict[str, Tensor]:
    """Return graphs with explicit edges and with zeros as padding, whatever the source of the edges.

    Args:
        graph: batch size `[*B]`.
        spec: its shape.

    Returns:
        `x [*B, N, F]`, `node_mask [*B, N]`, `edge_index [*B, 2, E]`, `edge_mask [*B, E]` and, where there are
        any, `edge_attr [*B, E, D]`, `pos [*B, N, P]`, `node_type [*B, N]` and `u [*B, G]`.
    """
    nodes, edges = graph["node_mask"], spec.edges_of(graph)
    found = {
        "x": spec.mask_padding(graph),
        "node_mask": nodes,
        "edge_index": edges.index.masked_fill(~edges.mask.unsqueeze(-2), 0),
        "edge_mask": edges.mask,
    }
    if edges.attr is not None:
        found["edge_attr"] = edges.attr.masked_fill(~edges.mask.unsqueeze(-1), 0.0)
    if spec.position_dim:
        found["pos"] = graph["pos"].masked_fill(~nodes.unsqueeze(-1), 0.0)
    if spec.node_types:
        found["node_type"] = graph["node_type"].masked_fill(~nodes, 0)
    if spec.graph_features:
        found["u"] = graph["u"]
    return found


def arrays(value: Any) -> Any:
    """Return copies of nested tensors as arrays; bool becomes int8, as in `MultiBinary` spaces."""
    if isinstance(value, Tensor):
        return (value.to(torch.int8) if value.dtype == torch.bool else value).detach().cpu().numpy().copy()
    return {name: arrays(part) for name, part in value.items()}


def observation_of(root: TensorDictBase, env: GraphEnv[Any]) -> Arrays:
    """Return what the worlds of a root show: `graph`, `action_mask`, `player`, `agents` and other entries."""
    shown: dict[str, Any] = {GRAPH: graph_tensors(root[GRAPH], env.graph)}
    for name, value in root.items():
        if name in env.observation_spec.keys() and name not in (GRAPH, "state", "metrics"):  # noqa: SIM118
            shown[name] = value
    return arrays(shown)


def space_of(value: Any, *, most_nodes: int) -> Any:
    """Return the Gymnasium space of one world's arrays, from an example.

    Args:
        value: arrays of one world, nested.
        most_nodes: exclusive upper bound of `edge_index`.
    """
    spaces = needed("gymnasium.spaces", "gymnasium")
    if isinstance(value, dict):
        return spaces.Dict({name: _space(name, part, most_nodes) for name, part in value.items()})
    return _space("", value, most_nodes)


def _space(name: str, value: Any, most_nodes: int) -> Any:
    spaces = needed("gymnasium.spaces", "gymnasium")
    if isinstance(value, dict):
        return space_of(value, most_nodes=most_nodes)
    if value.dtype == np.int8:
        return spaces.MultiBinary(value.shape) if value.ndim else spaces.Discrete(2)
    if np.issubdtype(value.dtype, np.integer):
        low, high = np.iinfo(value.dtype).min, np.iinfo(value.dtype).max
        if name == "edge_index":
            low, high = 0, max(most_nodes - 1, 0)
        return spaces.Box(low, high, value.shape, value.dtype)
    return spaces.Box(-np.inf, np.inf, value.shape, value.dtype)


def action_space_of(spec: TensorSpec, lead: int) -> Any:
    """Return the Gymnasium space of an action, without the first `lead` dimensions of its TorchRL spec.

    Raises:
        ConfigError: there is no such space.
    """
    spaces = needed("gymnasium.spaces", "gymnasium")
    shape = tuple(spec.shape[lead:])
    if isinstance(spec, Binary):
        return spaces.MultiBinary(shape)
    if isinstance(spec, Categorical):
        choices = int(spec.space.n)
        return spaces.Discrete(choices) if not shape else spaces.MultiDiscrete(np.full(shape, choices))
    if isinstance(spec, Bounded):
        index = (0,) * lead
        low, high = (bound[index].cpu().numpy() for bound in (spec.space.low, spec.space.high))
        return spaces.Box(low, high, shape, low.dtype)
    raise ConfigError(f"no Gymnasium space holds actions of {type(spec).__name__}")


def world_action_space(env: GraphEnv[Any]) -> Any:
    """Return the Gymnasium space of the action of one world; a `Dict` if it is composed of named parts."""
    if not isinstance(env.actions, ComposedLayout):
        return action_space_of(env.action_spec, 1)
    spaces = needed("gymnasium.spaces", "gymnasium")
    nodes, edges = env.actions.slots(env.fake_tensordict(), env.graph)
    found = {part.name: _part_space(part, nodes, edges) for part in env.actions.parts}
    return found[""] if "" in found else spaces.Dict(found)


def _part_space(part: Part, nodes: int, edges: int) -> Any:
    spaces = needed("gymnasium.spaces", "gymnasium")
    rows = () if part.kind == "choose" or part.of == "graph" else (part.rows(nodes, edges),)
    if part.kind == "number":
        shape = (*rows, part.dim) if part.dim > 1 else rows
        return spaces.Box(part.low, part.high, shape, np.float32)
    count = part.count(nodes, edges)
    return spaces.MultiDiscrete(np.full(rows, count)) if rows else spaces.Discrete(count)


def actions_from(given: Any, env: GraphEnv[Any]) -> Tensor:
    """Return actions of a batched Gymnasium space as those of the environment, `[B, ...]`."""
    if isinstance(env.actions, ComposedLayout):
        as_tensors = {
            name: torch.as_tensor(np.asarray(value), device=env.device)
            for name, value in (given if isinstance(given, Mapping) else {"": given}).items()
        }
        return env.actions.pack(as_tensors[""]) if "" in as_tensors else env.actions.pack(**as_tensors)
    spec = env.action_spec
    return torch.as_tensor(np.asarray(given), device=env.device).to(spec.dtype).reshape(spec.shape)


def legal_or_replaced(root: TensorDictBase, env: GraphEnv[Any]) -> Tensor:
    """Replace illegal actions of a root by random legal ones; returns which worlds had one, `[B]` bool."""
    action = root["action"]
    illegal = ~env.actions.is_legal(action, root, env.graph)
    if illegal.any():
        other = env.actions.sample(root, env.graph, generator=env.generator)
        root["action"] = torch.where(illegal.view(-1, *([1] * (action.ndim - 1))), other, action)
    return illegal


def first_world(value: Any) -> Any:
    """Return the arrays of the first world; numbers become arrays without dimensions."""
    if isinstance(value, dict):
        return {name: first_world(part) for name, part in value.items()}
    return np.asarray(value[0])


def scaled_to(space: Any) -> Callable[[Tensor], Any]:
    """Return the map of actions in [-1, 1] to a bounded `Box`."""
    low, width = space.low, space.high - space.low
    return lambda action: (low + width * (action.numpy().reshape(space.shape) + 1) / 2).astype(space.dtype)


def is_bounded_box(space: Any) -> bool:
    """Return whether a space is a `Box` with finite bounds."""
    spaces = needed("gymnasium.spaces", "gymnasium")
    return isinstance(space, spaces.Box) and bool(
        np.isfinite(space.low).all() and np.isfinite(space.high).all()
    )
