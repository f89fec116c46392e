"""Observations of graphs as named tensors, with edges instead of stored topologies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from tensordict import NestedKey, TensorDict, TensorDictBase
from torch import Generator, Tensor
from torchrl.data import Composite, TensorSpec

from edgewise.graphs.actions import ActionLayout, ChooseEdgePerGroup, ChooseFromSet, ComposedLayout
from edgewise.graphs.edges import Explicit
from edgewise.graphs.keys import ACTIVE, CHOICES, GRAPH, MASK, PRIOR, STEP
from edgewise.graphs.proximity import PositionRule
from edgewise.graphs.spec import GraphSpec
from edgewise.models.policy_function import TensorInfo, Tensors

GRAPHS, NODES, EDGES, AGENTS, GROUPS = "graphs", "nodes", "edges", "agents", "groups"
_EDGE_ENTRIES = ("edge_index", "edge_mask", "edge_attr")
_MEANINGS: dict[NestedKey, str] = {
    "x": "node features",
    "node_mask": "whether a node exists; what absent nodes hold has no effect",
    "edge_index": "node of each edge: sources in row 0, targets in row 1",
    "edge_mask": "whether an edge exists; what absent edges hold has no effect",
    "edge_attr": "edge features",
    "pos": "position of each node, from which edges are computed",
    "node_type": "type of each node",
    "u": "features of the whole graph",
    MASK: "which actions are allowed",
    PRIOR: "what a rule would do: a score of each choice, added to the logits, or the action itself",
    ACTIVE: "which agents act; agents are the first nodes of their graph",
    (STEP, "x"): "features of nodes, or of the choices that are offered, which change from step to step",
    (STEP, "u"): "features of the whole graph, which change from step to step",
    CHOICES: "the choices that are offered, as indices of {members}",
}


class ObservationInputs:
    """The entries of an observation that a policy reads, as named tensors.

    Edges that a rule computes from positions are computed in the policy. All others, stored with the graph or
    looked up by a topology's id, become the inputs `edge_index`, `edge_mask` and `edge_attr`.

    Args:
        env: an environment of the policy.
        keys: entries of the root that the policy reads; those that `env` does not have are left out.
        any_size: whether the policy takes graphs of any size; otherwise the number of nodes is fixed.

    Attributes:
        graph: shape of the graphs that `root` returns.
        infos: the inputs.
        sizes: of the named dimensions in `env`.
    """

    def __init__(self, env: Any, keys: Iterable[NestedKey], *, any_size: bool = True) -> None:
        self.own, self.layout = env.graph, env.actions
        self.is_rule = isinstance(self.own.edges, PositionRule)
        observed: Composite = env.observation_spec
        edges = int(self.own.edges_of(observed[GRAPH].zero()).mask.shape[-1])
        self.graph: GraphSpec = (
            self.own if self.is_rule else replace(self.own, edges=Explicit(edges, self.own.edge_features))
        )
        self.sizes = {GRAPHS: int(observed.shape[0]), NODES: self.own.num_nodes, EDGES: edges}
        self._keys: dict[str, NestedKey] = {}
        self.infos = self._graph_infos(observed[GRAPH])
        for key in dict.fromkeys(keys):
            if _first(key) != GRAPH and (spec := observed.get(key, None)) is not None:
                self.infos += self._infos(key, spec)
        if not any_size:
            # The edges of a rule follow from the nodes.
            for name in (NODES, EDGES, GROUPS) if self.is_rule else (NODES,):
                self.infos = tuple(_fixed(info, name, self.sizes.get(name, 0)) for info in self.infos)
        used = {size for info in self.infos for size in info.shape}
        self.sizes = {name: size for name, size in self.sizes.items() if name in used}

    def of(self, root: TensorDictBase) -> Tensors:
        """Return the inputs for observations `[B]` of the environment."""
        graph, found = root[GRAPH], {}
        if not self.is_rule:
            edges = self.own.edges_of(graph)
            found = dict(zip(_EDGE_ENTRIES, (edges.index, edges.mask, edges.attr), strict=True))
        named = {info.name: found.get(info.name) for info in self.infos}
        return {
            name: (root[self._keys[name]] if value is None else value).contiguous()
            for name, value in named.items()
        }

    def root(self, inputs: Mapping[str, Tensor]) -> TensorDict:
        """Return the inputs as an observation, `[B]`, whose graph has the shape `graph`."""
        batch = [inputs["node_mask"].shape[0]]
        root = TensorDict({GRAPH: TensorDict({}, batch)}, batch)
        for name, key in self._keys.items():
            if name in inputs:
                root.set(key, inputs[name])
        return root

    def infos_of_graph(self, entries: Iterable[str] | None = None) -> tuple[TensorInfo, ...]:
        """Return the inputs that belong to the graph, or those of them that are named."""
        own = tuple(info for info in self.infos if _first(self._keys[info.name]) == GRAPH)
        return own if entries is None else tuple(info for info in own if info.name in set(entries))

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes that are possible together: agents are nodes, groups of edges are edges."""
        fitted = dict(sizes)
        if NODES in fitted and AGENTS in fitted:
            fitted[NODES] = max(fitted[NODES], fitted[AGENTS])
        elif AGENTS in fitted:
            fitted[AGENTS] = min(fitted[AGENTS], self.own.num_nodes)
        if self.is_rule and EDGES in fitted:
            nodes = fitted.get(NODES, self.own.num_nodes)
            empty = replace(self.own, num_nodes=nodes).zeros(1)
            fitted[EDGES] = int(self.own.edges_of(empty).mask.shape[-1])
        if isinstance(self.layout, ChooseEdgePerGroup) and EDGES in fitted:
            fitted[EDGES] = max(fitted[EDGES], fitted[GROUPS] * self.layout.group_size)
        return fitted

    def sample(self, sizes: Mapping[str, int], generator: Generator) -> Tensors:
        """Sample random inputs: no two edges have the same source and target; agents have type 0."""
        found = {info.name: info.sample(sizes, generator) for info in self.infos}
        if "node_type" in found and AGENTS in sizes:
            is_agent = torch.arange(found["node_type"].shape[-1]) < sizes[AGENTS]
            others = found["node_type"].clamp(min=min(1, self.own.node_types - 1))
            found["node_type"] = torch.where(is_agent, 0, others)
        if "edge_index" in found:
            nodes, mask = found["node_mask"].shape[-1], found["edge_mask"]
            order = torch.rand(len(mask), nodes * nodes, generator=generator)
            order[:, 0] = -1.0  # the first edge exists, from the first node to itself: one can be chosen
            order = order.argsort(-1)
            pair = order[:, : mask.shape[-1]]
            index = torch.stack((pair // nodes, pair % nodes), -2)
            missing = mask.shape[-1] - pair.shape[-1]
            found["edge_index"] = torch.nn.functional.pad(index, (0, missing))
            mask[:, pair.shape[-1] :] = False
        return found

    def _graph_infos(self, observed: Composite) -> tuple[TensorInfo, ...]:
        shapes: dict[str, tuple[int | str, ...]] = {
            "x": (NODES, self.own.node_features),
            "node_mask": (NODES,),
        }
        below: dict[str, int | str] = {"edge_index": NODES, "node_type": self.own.node_types}
        if self.own.position_dim:
            shapes["pos"] = (NODES, self.own.position_dim)
        if self.own.node_types:
            shapes["node_type"] = (NODES,)
        if self.own.graph_features:
            shapes["u"] = (self.own.graph_features,)
        if not self.is_rule:
            shapes |= {"edge_index": (2, EDGES), "edge_mask": (EDGES,)}
            if self.own.edge_features:
                shapes["edge_attr"] = (EDGES, self.own.edge_features)
        else:
            shapes |= {
                name: _dims(spec.shape[1:], self.own.num_nodes)
                for name, spec in observed.items()
                if name not in shapes
            }
        infos = []
        for name, shape in shapes.items():
            dtype = observed[name].dtype if name in observed.keys() else _DTYPES[name]  # noqa: SIM118
            self._keys[name] = (GRAPH, name)
            meaning = _MEANINGS.get(name, f"`{name}` of the observed graph")
            infos.append(TensorInfo(name, dtype, (GRAPHS, *shape), meaning, below.get(name)))
        return tuple(infos)

    def _infos(self, key: NestedKey, spec: TensorSpec) -> tuple[TensorInfo, ...]:
        """Return the inputs of an entry of the root, and add their dimensions to `sizes`."""
        if isinstance(spec, Composite):
            nested = [(*_path(key), *_path(each)) for each in spec.keys(True, True)]
            return tuple(info for each in nested for info in self._infos(each, spec[each[len(_path(key)) :]]))
        name = "_".join(part for part in _path(key) if part != AGENTS)
        shape = self._shape(key, tuple(spec.shape[1:]))
        self._keys[name] = key
        self.sizes |= {
            dim: size for dim, size in zip(shape, spec.shape[1:], strict=True) if isinstance(dim, str)
        }
        members = self.layout.members if isinstance(self.layout, ChooseFromSet) else NODES
        meaning = _MEANINGS.get(key, f"`{'.'.join(_path(key))}` of the observation").format(members=members)
        below: int | str | None = _below(spec)
        if key == CHOICES:
            # The number of edges by a rule is no input; there are at least as many slots as nodes.
            below = members if members == NODES or not self.is_rule else NODES
        elif _path(key)[:2] == (STEP, "nodes"):
            below = NODES
        return (TensorInfo(name, spec.dtype, (GRAPHS, *shape), meaning, below),)

    def _shape(self, key: NestedKey, sizes: tuple[int, ...]) -> tuple[int | str, ...]:
        """Return the dimensions of an entry of the root, without that of graphs."""
        layout: ActionLayout = self.layout
        if key in (MASK, PRIOR) and layout.mask_dims is not None:
            return tuple(
                size if name is None else name for name, size in zip(layout.mask_dims, sizes, strict=True)
            )
        if _first(key) == MASK and isinstance(layout, ComposedLayout):
            return layout.mask_dims_of("" if key == MASK else _path(key)[1], len(sizes))
        if _first(key) == PRIOR and isinstance(layout, ComposedLayout):
            part = layout.part("" if key == PRIOR else _path(key)[1])
            return sizes if part.of == "graph" else (part.of, *sizes[1:])
        if key == CHOICES:
            return (CHOICES,)
        if key == (STEP, "x"):
            return (CHOICES if isinstance(layout, ChooseFromSet) else NODES, *sizes[1:])
        if _path(key)[0] == AGENTS:
            return (AGENTS, *sizes[1:])
        return sizes


_DTYPES = {"edge_index": torch.int64, "edge_mask": torch.bool, "edge_attr": torch.float32}


def _fixed(info: TensorInfo, name: str, size: int) -> TensorInfo:
    """Return an input whose dimension `name` has one size."""
    below = size if info.below == name else info.below
    return replace(info, shape=tuple(size if each == name else each for each in info.shape), below=below)


def _dims(shape: Iterable[int], num_nodes: int) -> tuple[int | str, ...]:
    """Return the dimensions of an entry of the graph, of which the first is that of nodes if it fits."""
    first, *rest = (*shape, 0)
    return (NODES if first == num_nodes else first, *rest[:-1]) if rest else ()


def _below(spec: TensorSpec) -> int | None:
    """Return the bound of whole numbers; None for others."""
    if spec.dtype.is_floating_point or spec.dtype == torch.bool:
        return None
    high = getattr(getattr(spec, "space", None), "high", None)
    return 2 if high is None else int(high.max()) + 1


def _path(key: NestedKey) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)


def _first(key: NestedKey) -> str:
    return _path(key)[0]
