"""Ablations of trained policies: act without edges, without a feature or without memory, and compare.

An ablated policy has the same weights. What it may not use is replaced by a constant: edges are removed from
the encoders, a feature is its mean at all nodes of all worlds, and hidden states are zero in every step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy, acting_in
from edgewise.evaluation.result import Evaluation
from edgewise.graphs.edges import Edges, EdgeSource
from edgewise.graphs.keys import GRAPH, RECURRENT
from edgewise.models.encoders.encoder import GraphEncoder

CLOSE = 0.05
"""Share of the range of an action by which a continuous action must differ to count as changed."""

COLUMN = re.compile(r"(?P<entry>[a-z_.]+)(\[(?P<column>\d+)\])?")


@dataclass(frozen=True)
class WithoutEdges(EdgeSource):
    """Edges of another source, none of which exists.

    Args:
        source: gives the edge slots.
    """

    source: EdgeSource

    def __call__(self, graph: TensorDict) -> Edges:
        """Return the slots of the source with an empty mask."""
        edges = self.source(graph)
        return replace(edges, mask=torch.zeros_like(edges.mask))

    def width(self, position_dim: int) -> int:
        """Return the number of edge features of the source."""
        return self.source.width(position_dim)


class AblatedPolicy(nn.Module):
    """A policy that acts without something that it was trained with.

    Args:
        policy: acts.
        change: returns a new root that it acts on, given the real one.
        changes: entries of the root that `change` replaces.
        cut: whether its encoders see no edges.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        change: Callable[[TensorDictBase], TensorDictBase],
        changes: Sequence[str] = (),
        cut: bool = False,
    ) -> None:
        super().__init__()
        self.policy, self.change, self.changes = policy, change, changes
        modules = policy.modules() if isinstance(policy, nn.Module) else ()
        self._encoders = [module for module in modules if isinstance(module, GraphEncoder)] if cut else []

    def on(self, env: Any) -> AbstractContextManager[None]:
        """Act in another environment inside the context."""
        return acting_in(self.policy, env)

    def forward(self, root: TensorDictBase) -> TensorDictBase:
        """Set `action`; the observation stays."""
        with self._without_edges():
            acted = self.policy(self.change(root)).copy()
        for name in self.changes:
            acted.set(name, root.get(name))
        return acted

    @contextmanager
    def _without_edges(self) -> Iterator[None]:
        specs = [encoder.graph for encoder in self._encoders]
        for encoder, spec in zip(self._encoders, specs, strict=True):
            encoder.graph = replace(spec, edges=WithoutEdges(spec.edges))
        try:
            yield
        finally:
            for encoder, spec in zip(self._encoders, specs, strict=True):
                encoder.graph = spec


def ablate(policy: Policy, what: str, env: GraphEnv[Any]) -> AblatedPolicy:
    """Return a policy that acts without something.

    Args:
        policy: trained.
        what: `edges`, `nodes` for all features and positions of nodes, `memory`, or an entry of the
            observation such as `x`, `x[2]`, `pos`, `edge_attr` or `agents.ego`.
        env: in which it acts.

    Raises:
        ConfigError: there is no such entry, or the policy has nothing of the kind.
    """
    if what == "edges":
        ablated = AblatedPolicy(policy, change=lambda root: root.copy(), cut=True)
        if not ablated._encoders:
            raise ConfigError("--ablate edges: the policy has no graph encoder, so it uses no edges")
        return ablated
    if what == "memory":
        if not _has_memory(policy):
            raise ConfigError("--ablate memory: the policy has no memory")
        return AblatedPolicy(policy, change=lambda root: root.exclude(RECURRENT))
    entries = _entries(what, env)
    changes = [key[0] for key, _ in entries]
    return AblatedPolicy(policy, change=lambda root: _with_means(root, entries), changes=changes)


def _has_memory(policy: Policy) -> bool:
    return isinstance(policy, nn.Module) and any(isinstance(part, nn.GRUCell) for part in policy.modules())


def _entries(what: str, env: GraphEnv[Any]) -> list[tuple[tuple[str, ...], int | None]]:
    """Return the entries of the root to replace, each with a column or None for all."""
    known = _features(env)
    if what == "nodes":
        return [(key, None) for key in ((GRAPH, "x"), (GRAPH, "pos")) if key in known]
    match = COLUMN.fullmatch(what)
    name = match["entry"] if match else what
    key = next((key for key in known if name in (key[-1], ".".join(key))), None)
    shown = ", ".join(sorted(key[-1] if key[0] == GRAPH else ".".join(key) for key in known))
    if match is None or key is None:
        raise ConfigError(f"--ablate: got {what}, expected edges, nodes, memory or one of {shown}")
    column = None if match["column"] is None else int(match["column"])
    if column is not None and column >= known[key]:
        raise ConfigError(f"--ablate: {name} has {known[key]} columns, counted from 0; got {what}")
    return [(key, column)]


def _features(env: GraphEnv[Any]) -> dict[tuple[str, ...], int]:
    """Return the real-valued entries that a policy may observe, with their widths."""
    found = {}
    for key in env.observation_spec.keys(include_nested=True, leaves_only=True):
        path = (key,) if isinstance(key, str) else tuple(key)
        spec = env.observation_spec[key]
        if path[0] not in ("state", "metrics") and spec.dtype.is_floating_point and spec.shape:
            found[path] = int(spec.shape[-1])
    return found


def _with_means(root: TensorDictBase, entries: list[tuple[tuple[str, ...], int | None]]) -> TensorDictBase:
    """Return a root in which each value of these entries is its mean over all worlds and nodes."""
    changed = root.copy()
    for key, column in entries:
        value = root[key]
        mean = _mean(value, _exists(root, key, value))
        whole = mean.expand_as(value).clone()
        if column is not None:
            only = value.clone()
            only[..., column] = whole[..., column]
            whole = only
        if len(key) > 1:
            changed[key[0]] = changed[key[0]].copy()
        changed[key] = whole
    return changed


def _exists(root: TensorDictBase, key: tuple[str, ...], value: Tensor) -> Tensor | None:
    """Return which rows of an entry belong to something that exists."""
    if key in ((GRAPH, "x"), (GRAPH, "pos")):
        found: Tensor = root[GRAPH, "node_mask"]
        return found
    mask = root.get((GRAPH, "edge_mask"), None)
    is_of_edges = key == (GRAPH, "edge_attr") and mask is not None and mask.shape == value.shape[:-1]
    return mask if is_of_edges else None


def _mean(value: Tensor, exists: Tensor | None) -> Tensor:
    """Return the mean of each column, `[..., K]` to `[K]`."""
    rows = value if exists is None else value[exists]
    return rows.reshape(-1, value.shape[-1]).mean(0)


class ComparedPolicy(nn.Module):
    """A policy that acts as always and counts where another one would have acted differently.

    Args:
        policy: acts.
        other: is only asked.
        env: gives the range of continuous actions.
    """

    def __init__(self, policy: Policy, other: Policy, env: GraphEnv[Any]) -> None:
        super().__init__()
        self.policy, self.other = policy, other
        self._range = getattr(env.actions, "high", 1.0) - getattr(env.actions, "low", 0.0)
        self._changed: list[Tensor] = []
        self._counted: list[Tensor] = []

    def on(self, env: Any) -> AbstractContextManager[None]:
        """Act in another environment inside the context."""
        return acting_in(self.policy, env)

    def forward(self, root: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        other = self.other(root.copy())["action"]
        acted = self.policy(root)
        action = acted["action"]
        if action.is_floating_point():
            differs = ((action - other).abs() > CLOSE * self._range).any(-1)
        else:
            differs = action != other
        active = acted.get(("agents", "active"), None)
        if active is None or active.shape != differs.shape:
            differs = differs.reshape(len(differs), -1).any(-1, keepdim=True)
            active = torch.ones_like(differs)
        self._changed.append((differs & active).sum(-1).cpu())
        self._counted.append(active.sum(-1).cpu())
        return acted

    def share(self, result: Evaluation) -> float:
        """Return the share of actions that differed, over the steps of all episodes of an evaluation."""
        changed, counted = torch.stack(self._changed, -1), torch.stack(self._counted, -1)
        steps = torch.arange(changed.shape[-1])
        played = steps < torch.as_tensor(result.lengths).unsqueeze(-1)
        return float((changed * played).sum() / (counted * played).sum())
