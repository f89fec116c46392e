"""Validate graphs that come from outside; every fault is a ValueError that names the graph and the field.

Reading values synchronises with an accelerator, so validate graphs once on input, not in every step.
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
    """Raise ValueError if `graph` does not match `spec`.

    Padding is not checked, and entries that are not in the spec are ignored.

    Args:
        graph: graphs with any batch size `[*B]`, or a plain dict of their tensors.
        spec: expected shape.
        name: of the graph in messages, as in `graph[3, 1].x: NaN at node 2, feature 0`.
    """
    if not isinstance(graph, TensorDictBase | Mapping):
        raise ValueError(f"{name}: expected a TensorDict, got {type(graph).__name__}")
    entries = dict(graph.items())
    _check_presence(entries, spec, name)
    lead = graph.batch_size if isinstance(graph, TensorDictBase) else entries["node_mask"].shape[:-1]
    _check_form(entries, spec, name=name, lead=tuple(lead))
    _check_nodes(entries, spec, name)
    if spec.graph_features:
        _check_graph_features(entries["u"], name)
    if isinstance(spec.edges, Explicit):
        _check_edges(entries, spec, name)
    if isinstance(spec.edges, Topology):
        _check_topology(entries["topology"], len(spec.edges.bank), name)


def _check_presence(entries: Entries, spec: GraphSpec, name: str) -> None:
    for key in dict(spec.composite().items()):
        if key not in entries:
            raise ValueError(f"{name}.{key}: missing, but the spec requires it")
        if not isinstance(entries[key], Tensor):
            raise ValueError(f"{name}.{key}: expected a tensor, got {type(entries[key]).__name__}")


def _check_form(entries: Entries, spec: GraphSpec, *, name: str, lead: tuple[int, ...]) -> None:
    """Check dtypes, shapes and devices."""
    device = entries["node_mask"].device
    for key, expected in spec.composite().items():
        value, shape = entries[key], (*lead, *expected.shape)
        both_float = value.is_floating_point() and expected.dtype.is_floating_point
        if value.dtype != expected.dtype and not both_float:
            raise ValueError(f"{name}.{key}: dtype is {value.dtype}, the spec requires {expected.dtype}")
        if value.shape != shape:
            raise ValueError(
                f"{name}.{key}: shape is {list(value.shape)}, the spec requires {list(shape)} "
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
    """Check that values `[*B, K, C]` are finite where `exists [*B, K]`."""
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


def _check_graph_features(values: Tensor, name: str) -> None:
    place = _first(~values.isfinite())
    if place:
        *world, column = place
        value = float(values[tuple(place)])
        _fail(name, world, f"u: {'NaN' if math.isnan(value) else value} at feature {column}")


def _outside(values: Tensor, count: int) -> Tensor:
    return (values < 0) | (values >= count)


def _first(bad: Tensor) -> list[int]:
    """Return the index of the first true entry; an empty list if there is none."""
    found = bad.nonzero()
    return [int(number) for number in found[0]] if len(found) else []


def _fail(name: str, world: list[int], what: str) -> NoReturn:
    raise ValueError(f"{name}{world if world else ''}.{what}")
