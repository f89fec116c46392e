"""A close look at a graph from outside: every fault is a ValueError that names the graph and the field.

Reading values makes the host wait for an accelerator: this is for graphs as they come in, not for every step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology

Entries = dict[str, Any]


def validate(graph: TensorDict, spec: GraphSpec, *, name: str = "graph") -> None:
    """Raise ValueError where `graph` is not a graph as `spec` describes it.

    Padding may hold anything and is not looked at; entries that the spec does not know are ignored.

    Args:
        graph: batch size `[*B]`, none included, or a plain dict of its tensors.
        spec: what it should be.
        name: how to call the graph in messages, as in `graph[3, 1].x: NaN at node 2, feature 0`.
    """
    if not isinstance(graph, TensorDictBase | Mapping):
        raise ValueError(f"{name}: a TensorDict is wanted, got {type(graph).__name__}")
    entries = dict(graph.items())
    _check_presence(entries, spec, name)
    lead = graph.batch_size if isinstance(graph, TensorDictBase) else entries["node_mask"].shape[:-1]
    _check_form(entries, spec, name=name, lead=tuple(lead))
    _check_nodes(entries, spec, name)
    if isinstance(spec.edges, Explicit):
        _check_edges(entries, spec, name)
    if isinstance(spec.edges, Topology):
        _check_topology(entries["topology"], len(spec.edges.bank), name)


def _check_presence(entries: Entries, spec: GraphSpec, name: str) -> None:
    for key in dict(spec.composite().items()):
        if key not in entries:
            raise ValueError(f"{name}.{key}: missing, but the spec asks for it")
        if not isinstance(entries[key], Tensor):
            raise ValueError(f"{name}.{key}: a tensor is wanted, got {type(entries[key]).__name__}")


def _check_form(entries: Entries, spec: GraphSpec, *, name: str, lead: tuple[int, ...]) -> None:
    """Dtypes, shapes and devices."""
    device = entries["node_mask"].device
    for key, wanted in spec.composite().items():
        value, shape = entries[key], (*lead, *wanted.shape)
        both_float = value.is_floating_point() and wanted.dtype.is_floating_point
        if value.dtype != wanted.dtype and not both_float:
            raise ValueError(f"{name}.{key}: dtype is {value.dtype}, the spec asks for {wanted.dtype}")
        if value.shape != shape:
            raise ValueError(
                f"{name}.{key}: shape is {list(value.shape)}, the spec asks for {list(shape)} "
                f"with leading dimensions {list(lead)}"
            )
        if value.device != device:
            raise ValueError(f"{name}.{key}: is on {value.device}, but node_mask is on {device}")


def _check_nodes(entries: Entries, spec: GraphSpec, name: str) -> None:
    exists = entries["node_mask"]
    for key, column in (("x", "feature"), ("pos", "coordinate")):
        if key == "x" or spec.position_dim:
            _check_finite(entries, key, exists, name=name, about=("node", column))
    if spec.node_types:
        kind = entries["node_type"]
        place = _first(_outside(kind, spec.node_types) & exists)
        if place:
            *world, node = place
            value = int(kind[tuple(place)])
            _fail(name, world, f"node_type: {value} at node {node}, but types are 0 .. {spec.node_types - 1}")


def _check_edges(entries: Entries, spec: GraphSpec, name: str) -> None:
    index, exists = entries["edge_index"], entries["edge_mask"]
    place = _first(_outside(index, spec.num_nodes) & exists.unsqueeze(-2))
    if place:
        *world, end, edge = place
        value, role = int(index[tuple(place)]), ("source", "target")[end]
        allowed = f"0 .. {spec.num_nodes - 1}"
        _fail(name, world, f"edge_index: {value} as {role} of edge {edge}, but nodes are {allowed}")
    if spec.edge_features:
        _check_finite(entries, "edge_attr", exists, name=name, about=("edge", "feature"))


def _check_topology(number: Tensor, known: int, name: str) -> None:
    bad = _outside(number, known)
    if bad.any():
        world = _first(bad)
        _fail(name, world, f"topology: {int(number[tuple(world)])}, but the bank has 0 .. {known - 1}")


def _check_finite(entries: Entries, key: str, exists: Tensor, *, name: str, about: tuple[str, str]) -> None:
    """Values `[*B, K, C]` must be finite where `exists [*B, K]`."""
    values = entries[key]
    place = _first(~values.isfinite() & exists.unsqueeze(-1))
    if place:
        *world, row, column = place
        value = float(values[tuple(place)])
        _fail(
            name,
            world,
            f"{key}: {'NaN' if math.isnan(value) else value} at {about[0]} {row}, {about[1]} {column}",
        )


def _outside(values: Tensor, count: int) -> Tensor:
    return (values < 0) | (values >= count)


def _first(bad: Tensor) -> list[int]:
    """Where the first true entry is; an empty list where there is none."""
    found = bad.nonzero()
    return [int(number) for number in found[0]] if len(found) else []


def _fail(name: str, world: list[int], what: str) -> NoReturn:
    raise ValueError(f"{name}{world if world else ''}.{what}")
