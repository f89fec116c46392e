"""The part of the contract that one step shows: types, shapes, masks, agents and flags."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.envs.transition import DONE
from edgewise.graphs.actions import (
    AgentsContinuous,
    AgentsDiscrete,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseIndependentSet,
    ChooseNode,
    ChooseSuccessor,
    EdgesDiscrete,
)
from edgewise.graphs.keys import GRAPH


def check_root(env: GraphEnv[Any], root: TensorDictBase) -> None:
    """Raise where `root`, before a step, is not as the contract has it; `check_entries` included."""
    check_entries(env, root)
    mask = root.get("action_mask", None)
    if mask is not None and not isinstance(env.actions, ChooseIndependentSet):
        _refuse(~mask.any(-1).reshape(len(mask), -1).all(-1), f"{env.name}: no action is legal")


def check_entries(env: GraphEnv[Any], entries: TensorDictBase) -> None:
    """Raise where observations, mask or agents of a root or a next are not as the contract has them."""
    for name in entries.keys(include_nested=True, leaves_only=True):
        value = entries[name]
        if value.device != env.device:
            raise AssertionError(f"{env.name}: `{_dotted(name)}` is on {value.device}, not on {env.device}")
        if value.is_floating_point() and name[0] != "state":
            finite = value.isfinite().reshape(len(value), -1).all(-1)
            _refuse(~finite, f"{env.name}: `{_dotted(name)}` is not finite, padding included,")
    _check_graph(env, entries[GRAPH])
    _check_mask(env, entries)
    _check_agents(env, entries)
    _expect(env, entries, ("state", "step"), shape=(), dtype=torch.int64)
    if entries.get("player", None) is not None:
        _expect(env, entries, "player", shape=(), dtype=torch.int64)
        _refuse((entries["player"] < 0) | (entries["player"] > 1), f"{env.name}: `player` is neither 0 nor 1")
    for name in dict(entries.get("metrics", {}).items()):
        _expect(env, entries, ("metrics", name), shape=(), dtype=torch.float32)


def check_flags(env: GraphEnv[Any], root: TensorDictBase, following: TensorDictBase) -> None:
    """Raise where reward, flags or agents' endings of one step contradict each other."""
    agents = (env.num_agents,) if env.num_agents else ()
    _expect(env, following, "reward", shape=(*agents, 1), dtype=torch.float32)
    for name in DONE:
        _expect(env, following, name, shape=(1,), dtype=torch.bool)
    done, terminated, truncated = (following[name].squeeze(-1) for name in DONE)
    _refuse(done != (terminated | truncated), f"{env.name}: done is not `terminated or truncated`")
    _refuse(terminated & truncated, f"{env.name}: a world is both terminated and truncated")
    steps = following["state", "step"] - root["state", "step"]
    _refuse(steps != 1, f"{env.name}: `state.step` does not count the step")
    if not env.num_agents:
        return
    before, after = root["agents"], following["agents"]
    paid = following["reward"].squeeze(-1) != 0
    _refuse((paid & ~before["active"]).any(-1), f"{env.name}: an inactive agent gets a reward")
    _refuse((after["active"] & ~before["active"]).any(-1), f"{env.name}: an inactive agent becomes active")
    _refuse((before["terminated"] & ~after["terminated"]).any(-1), f"{env.name}: an agent's end is forgotten")
    gone = before["active"] & ~after["active"] & ~after["terminated"]
    _refuse(gone.any(-1), f"{env.name}: an agent stops acting and is not terminated")
    _refuse(~after["active"].any(-1) & ~done, f"{env.name}: no agent is active and the world is not done")


def _check_graph(env: GraphEnv[Any], graph: TensorDictBase) -> None:
    spec = env.graph.composite((), env.device)
    if set(graph.keys()) != set(spec.keys()):
        raise AssertionError(
            f"{env.name}: the graph has {sorted(graph.keys())}, its GraphSpec {sorted(spec.keys())}"
        )
    for name, part in spec.items():
        _expect(env, graph, name, shape=tuple(part.shape), dtype=part.dtype, within="graph.")
    _refuse(~graph["node_mask"].any(-1), f"{env.name}: the graph has no node")
    if graph.get("edge_mask", None) is not None:
        index = graph["edge_index"]
        beyond = ((index < 0) | (index >= env.graph.num_nodes)).flatten(1).any(-1)
        _refuse(beyond, f"{env.name}: `graph.edge_index` points outside of the graph")
        lost = graph["edge_mask"] & ~env.graph.edges_of(graph).mask
        _refuse(lost.any(-1), f"{env.name}: an edge that exists joins a node that does not")


def _check_mask(env: GraphEnv[Any], entries: TensorDictBase) -> None:
    shape = _mask_shape(env, entries)
    if entries.get("action_mask", None) is None:
        if isinstance(env.actions, ChooseNode | ChooseIndependentSet | ChooseFromSet | ChooseEdgePerGroup):
            raise AssertionError(f"{env.name}: {type(env.actions).__name__} needs `action_mask`: give `mask`")
        return
    _expect(env, entries, "action_mask", shape=shape, dtype=torch.bool)
    if isinstance(env.actions, ChooseNode | ChooseIndependentSet):
        absent = entries["action_mask"] & ~entries[GRAPH, "node_mask"]
        _refuse(absent.any(-1), f"{env.name}: `action_mask` allows a node that does not exist")


def _mask_shape(env: GraphEnv[Any], entries: TensorDictBase) -> tuple[int, ...]:
    match env.actions:
        case ChooseNode() | ChooseIndependentSet():
            return (env.graph.num_nodes,)
        case ChooseFromSet(max_choices) | ChooseSuccessor(max_choices):
            return (max_choices,)
        case AgentsDiscrete(agents, actions):
            return (agents, actions)
        case AgentsContinuous(agents, dim):
            return (agents, dim)
        case EdgesDiscrete(actions):
            return (env.graph.edges_of(entries[GRAPH]).mask.shape[-1], actions)
        case ChooseEdgePerGroup(groups, size):
            return (groups, 1 + size)


def _check_agents(env: GraphEnv[Any], entries: TensorDictBase) -> None:
    if not env.num_agents:
        return
    for name in ("active", "terminated"):
        _expect(env, entries, ("agents", name), shape=(env.num_agents,), dtype=torch.bool)
    active, nodes = entries["agents", "active"], entries[GRAPH, "node_mask"]
    _refuse((active & entries["agents", "terminated"]).any(-1), f"{env.name}: an ended agent is still active")
    absent = active & ~nodes[:, : env.num_agents]
    _refuse(absent.any(-1), f"{env.name}: an active agent is no node; agents are the first nodes")


def _expect(
    env: GraphEnv[Any],
    entries: TensorDictBase,
    name: str | tuple[str, ...],
    *,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    within: str = "",
) -> None:
    """Raise where the entry is absent or of another shape, beside the batch, or another type."""
    value, label = entries.get(name, None), f"{env.name}: `{within}{_dotted(name)}`"
    if value is None:
        raise AssertionError(f"{label} is missing")
    if value.dtype != dtype:
        raise AssertionError(f"{label} must be {dtype}, is {value.dtype}")
    if tuple(value.shape[1:]) != shape:
        raise AssertionError(f"{label} must be [B, {shape}] in shape, is {list(value.shape)}")


def _refuse(wrong: Tensor, complaint: str) -> None:
    """Raise where any world `[B]` is wrong, naming the first."""
    if wrong.any():
        raise AssertionError(f"{complaint} in world {int(wrong.nonzero()[0])}")


def _dotted(name: str | tuple[str, ...]) -> str:
    return name if isinstance(name, str) else ".".join(name)
