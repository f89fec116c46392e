"""The part of the contract that can be checked on one step: dtypes, shapes, masks, agents and flags."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.envs.transition import DONE
from edgewise.graphs.actions import ComposedLayout
from edgewise.graphs.keys import GRAPH, MASK


def check_root(env: GraphEnv[Any], root: TensorDictBase) -> None:
    """Raise AssertionError if `root`, before a step, breaks the contract; includes `check_entries`."""
    check_entries(env, root)
    mask = root.get(MASK, None)
    if isinstance(env.actions, ComposedLayout):
        _refuse(~env.actions.worlds_with_action(root, env.graph), f"{env.name}: no action is legal")
    elif mask is not None:
        _refuse(~env.actions.has_legal_action(mask), f"{env.name}: no action is legal")


def check_entries(env: GraphEnv[Any], entries: TensorDictBase) -> None:
    """Raise AssertionError if observation, mask or agents of a root or a next break the contract.

    A metric may be NaN, which says that it is not defined in an episode.
    """
    _check_state(env, entries["state"])
    for name in entries.keys(include_nested=True, leaves_only=True):
        value = entries[name]
        if not value.dim() or len(value) != len(entries):
            raise AssertionError(
                f"{env.name}: `{_dotted(name)}` must have a row for each of {len(entries)} worlds, is "
                f"{list(value.shape)}"
            )
        if value.device != env.device:
            raise AssertionError(f"{env.name}: `{_dotted(name)}` is on {value.device}, not on {env.device}")
        if value.is_floating_point() and name[0] not in ("state", "metrics"):
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
    """Raise AssertionError if reward, flags or agents' flags of one step contradict each other."""
    kept, given = set(root["state"].keys()), set(following["state"].keys())
    if kept != given:
        raise AssertionError(
            f"{env.name}: a step changes {', '.join(sorted(given - kept))}, which `spawn` did not return"
        )
    agents = (env.num_agents,) if env.num_agents else ()
    _expect(env, following, "reward", shape=(*agents, 1), dtype=torch.float32)
    for name in DONE:
        _expect(env, following, name, shape=(1,), dtype=torch.bool)
    done, terminated, truncated = (following[name].squeeze(-1) for name in DONE)
    _refuse(done != (terminated | truncated), f"{env.name}: done is not `terminated or truncated`")
    _refuse(terminated & truncated, f"{env.name}: a world is both terminated and truncated")
    steps = following["state", "step"] - root["state", "step"]
    held = env.max_steps if env.hold == "episode" else env.hold
    wrong = (steps < 1) | (steps > held) | ((steps < held) & ~done)
    _refuse(wrong, f"{env.name}: `state.step` does not count the step")
    if not env.num_agents:
        return
    before, after = root["agents"], following["agents"]
    paid = following["reward"].squeeze(-1) != 0
    _refuse((paid & ~before["active"]).any(-1), f"{env.name}: an inactive agent gets a reward")
    _refuse((after["active"] & ~before["active"]).any(-1), f"{env.name}: an inactive agent becomes active")
    _refuse(
        (before["terminated"] & ~after["terminated"]).any(-1), f"{env.name}: an agent's `terminated` is reset"
    )
    gone = before["active"] & ~after["active"] & ~after["terminated"]
    _refuse(gone.any(-1), f"{env.name}: an agent becomes inactive but is not terminated")
    _refuse(~after["active"].any(-1) & ~done, f"{env.name}: no agent is active and the world is not done")


def _check_state(env: GraphEnv[Any], state: TensorDictBase) -> None:
    """Compare the state with that of the first world; its faults would show in the observation."""
    first = env.state_spec["state"]
    for name in state.keys(include_nested=True, leaves_only=True):
        if first.get(name, None) is not None:
            spec = first[name]
            _expect(env, state, name, shape=tuple(spec.shape[1:]), dtype=spec.dtype, within="state.")


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
        what = "an edge that exists joins a node that does not: clear its edge_mask"
        _refuse(lost.any(-1), f"{env.name}: {what}")


def _check_mask(env: GraphEnv[Any], entries: TensorDictBase) -> None:
    mask = entries.get(MASK, None)
    if mask is None:
        if env.actions.needs_mask:
            raise AssertionError(f"{env.name}: {type(env.actions).__name__} needs `action_mask`: give `mask`")
        return
    num_edges = env.graph.edges_of(entries[GRAPH]).mask.shape[-1]
    if isinstance(env.actions, ComposedLayout):
        try:
            env.actions.check_mask(mask, env.graph, num_edges=num_edges)
        except ValueError as error:
            raise AssertionError(f"{env.name}: {error}") from error
        return
    if isinstance(mask, TensorDictBase):
        raise AssertionError(
            f"{env.name}: `mask` gives masks by name, and {type(env.actions).__name__} takes one tensor"
        )
    shape = env.actions.mask_shape(env.graph, num_edges=num_edges)
    _expect(env, entries, MASK, shape=shape, dtype=torch.bool)
    exists = env.actions.default_mask(entries[GRAPH])
    if exists is not None:
        absent = mask & ~exists
        _refuse(absent.any(-1), f"{env.name}: `action_mask` allows a node that does not exist")


def _check_agents(env: GraphEnv[Any], entries: TensorDictBase) -> None:
    if not env.num_agents:
        return
    for name in ("active", "terminated"):
        _expect(env, entries, ("agents", name), shape=(env.num_agents,), dtype=torch.bool)
    active, nodes = entries["agents", "active"], entries[GRAPH, "node_mask"]
    _refuse(
        (active & entries["agents", "terminated"]).any(-1), f"{env.name}: a terminated agent is still active"
    )
    absent = active & ~nodes[:, : env.num_agents]
    _refuse(absent.any(-1), f"{env.name}: an active agent is not a node; agents are the first nodes")


def _expect(
    env: GraphEnv[Any],
    entries: TensorDictBase,
    name: str | tuple[str, ...],
    *,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    within: str = "",
) -> None:
    """Raise AssertionError if an entry is missing or has another shape, after the batch, or dtype."""
    value, label = entries.get(name, None), f"{env.name}: `{within}{_dotted(name)}`"
    if value is None:
        raise AssertionError(f"{label} is missing")
    if value.dtype != dtype:
        raise AssertionError(f"{label} must be {dtype}, is {value.dtype}")
    if tuple(value.shape[1:]) != shape:
        wanted = ", ".join(map(str, ("B", *shape)))
        raise AssertionError(f"{label} must have shape [{wanted}], is {list(value.shape)}")


def _refuse(wrong: Tensor, message: str) -> None:
    """Raise AssertionError if `wrong` `[B]` is true for any world, naming the first."""
    if wrong.any():
        raise AssertionError(f"{message} in world {int(wrong.nonzero()[0])}")


def _dotted(name: str | tuple[str, ...]) -> str:
    return name if isinstance(name, str) else ".".join(name)
