"""A graph as a file or networkx describes it, and its conversion to features, positions and types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch_geometric.data import Data

from edgewise.config.errors import DataError
from edgewise.config.sources import shown

LARGEST_NUMBER = 3.4e38
"""Numbers of graphs are float32."""
MAX_TYPES = 1000
"""Whole numbers below this are ids of types; larger ones are names."""


@dataclass(frozen=True)
class RawGraph:
    """Nodes and edges with named attributes.

    Args:
        where: name in error messages: the path of a file, or `graphs[3]`.
        labels: name of each node in error messages.
        nodes: attributes of each node.
        edges: source, target and attributes of each edge; ends are indices into `nodes`.
        directed: whether an edge leads one way only.
        attributes: of the graph itself.
    """

    where: str
    labels: Sequence[str]
    nodes: Sequence[Mapping[str, Any]]
    edges: Sequence[tuple[int, int, Mapping[str, Any]]]
    directed: bool
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Names:
    """What the numbers of a set of graphs mean, in the order of their columns or ids.

    Args:
        node_features: columns of `x`.
        edge_features: columns of `edge_attr`; those of edge types are called `type=NAME`.
        node_types: ids in `node_type`.
        graph_features: columns of `u`.
    """

    node_features: tuple[str, ...] = ()
    edge_features: tuple[str, ...] = ()
    node_types: tuple[str, ...] = ()
    graph_features: tuple[str, ...] = ()


def fail(where: str, message: str, *, hint: str | None = None) -> NoReturn:
    """Raise DataError about one graph."""
    raise DataError(f"{where}: {message}", hint=hint)


def to_data(graphs: Sequence[RawGraph]) -> tuple[list[Data], Names]:
    """Convert graphs to PyG Data with the same columns in all of them, and return what the columns mean.

    Numbers, truth values and sequences of numbers become features, in alphabetical order of their names.
    `pos`, or `x` and `y` with or without `z`, becomes the position. `node_type`, `edge_type` or `type`
    becomes the type, which is one-hot in `edge_attr` for edges. Other texts are ignored. Numbers on the graph
    itself become `u`. An undirected edge becomes two directed ones.

    Raises:
        DataError: an attribute is missing on some node or edge, or is not a finite number.
    """
    node_names = _attribute_names(attributes for graph in graphs for attributes in graph.nodes)
    edge_names = _attribute_names(attributes for graph in graphs for _, _, attributes in graph.edges)
    position = _position_names(node_names)
    node_type = _type_name(node_names, "node_type")
    edge_type = _type_name(edge_names, "edge_type")
    for graph in graphs:
        _check_types(graph.where, "node", graph.labels, graph.nodes, node_type)
        _check_types(
            graph.where, "edge", range(len(graph.edges)), [item[2] for item in graph.edges], edge_type
        )
    node_types = _type_values(node_type, (attributes for graph in graphs for attributes in graph.nodes))
    edge_types = _type_values(edge_type, (item[2] for graph in graphs for item in graph.edges))
    node_columns = sorted(name for name, numeric in node_names.items() if numeric and name not in position)
    edge_columns = sorted(name for name, numeric in edge_names.items() if numeric)
    node_columns = [name for name in node_columns if name != node_type]
    edge_columns = [name for name in edge_columns if name != edge_type]
    own = _attribute_names(graph.attributes for graph in graphs)
    graph_columns = sorted(name for name, numeric in own.items() if numeric)
    columns = _Columns(
        node_columns, edge_columns, position, node_type, node_types, edge_type, edge_types, graph_columns
    )
    converted = [columns.convert(graph) for graph in graphs]
    names = Names(
        node_features=tuple(_expanded(node_columns, (a for graph in graphs for a in graph.nodes))),
        edge_features=(
            *_expanded(edge_columns, (item[2] for graph in graphs for item in graph.edges)),
            *(f"type={kind}" for kind in edge_types),
        ),
        node_types=tuple(node_types),
        graph_features=tuple(_expanded(graph_columns, (graph.attributes for graph in graphs))),
    )
    return converted, names


@dataclass(frozen=True)
class _Columns:
    """Which attributes become which numbers."""

    node_columns: list[str]
    edge_columns: list[str]
    position: tuple[str, ...]
    node_type: str | None
    node_types: list[str]
    edge_type: str | None
    edge_types: list[str]
    graph_columns: list[str]

    def convert(self, graph: RawGraph) -> Data:
        """Return the Data of one graph."""
        nodes = [f"node {label}" for label in graph.labels]
        ends = [f"edge {graph.labels[s]} → {graph.labels[t]}" for s, t, _ in graph.edges]
        attributes = [item[2] for item in graph.edges]
        index = torch.tensor([item[:2] for item in graph.edges], dtype=torch.int64).reshape(-1, 2).T
        values = _matrix(graph.where, ends, attributes, self.edge_columns)
        if self.edge_type is not None:
            kinds = _ids(graph.where, ends, attributes, self.edge_type, self.edge_types)
            shown = torch.nn.functional.one_hot(kinds, len(self.edge_types)).float()
            values = shown if values is None else torch.cat((values, shown), 1)
        if not graph.directed:
            back = index[0] != index[1]
            index = torch.cat((index, index.flip(0)[:, back]), 1)
            values = None if values is None else torch.cat((values, values[back]))
        own = None
        if self.node_type is not None:
            own = _ids(graph.where, nodes, graph.nodes, self.node_type, self.node_types)
        return Data(
            x=_matrix(graph.where, nodes, graph.nodes, self.node_columns),
            edge_index=index,
            edge_attr=values,
            pos=_matrix(graph.where, nodes, graph.nodes, self.position),
            node_type=own,
            u=_matrix(graph.where, ["the graph"], [graph.attributes], self.graph_columns),
            num_nodes=len(graph.nodes),
        )


def _attribute_names(items: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Return the names of all attributes, and whether every value of each is numbers."""
    names: dict[str, bool] = {}
    for attributes in items:
        for name, value in attributes.items():
            names[str(name)] = names.get(str(name), True) and _is_numeric(value)
    return names


def _is_numeric(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping) or value is None:
        return False
    return isinstance(value, Real) or hasattr(value, "__len__") or hasattr(value, "item")


def _position_names(names: Mapping[str, bool]) -> tuple[str, ...]:
    if names.get("pos"):
        return ("pos",)
    if names.get("x") and names.get("y"):
        return ("x", "y", "z") if names.get("z") else ("x", "y")
    return ()


def _type_name(names: Mapping[str, bool], own: str) -> str | None:
    return next((name for name in (own, "type") if name in names), None)


def _check_types(
    where: str, what: str, labels: Sequence[Any], items: Sequence[Mapping[str, Any]], name: str | None
) -> None:
    """Raise DataError for a type that is neither text nor a whole number."""
    for label, item in zip(labels, items, strict=True):
        kind = item.get(name, "") if name is not None else ""
        if isinstance(kind, bool) or not isinstance(kind, str | int):
            hint = "give a name or a whole number"
            fail(where, f"{name} of {what} {label} is {shown(kind)}, which is no type", hint=hint)


def _type_values(name: str | None, items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the types by name, in the order of their ids; whole numbers are ids already."""
    found = {} if name is None else {item[name]: None for item in items if name in item}
    if found and all(isinstance(kind, int) and 0 <= kind < MAX_TYPES for kind in found):
        return [str(kind) for kind in range(max(found) + 1)]
    return sorted(set(map(str, found)))


def _ids(
    where: str, items: Sequence[str], attributes: Sequence[Mapping[str, Any]], name: str, types: Sequence[str]
) -> Tensor:
    """Return the type of each item as an index into `types`."""
    for item, values in zip(items, attributes, strict=True):
        if name not in values:
            fail(where, f"{item} has no {name}", hint=f"give every one its {name}, or none")
    return torch.tensor([types.index(str(values[name])) for values in attributes], dtype=torch.int64)


def _matrix(
    where: str, items: Sequence[str], attributes: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> Tensor | None:
    """Return the named attributes of all items as numbers, `[len(items), width]`; None without names."""
    if not names:
        return None
    rows: list[list[float]] = []
    for item, values in zip(items, attributes, strict=True):
        row: list[float] = []
        for name in names:
            if name not in values:
                fail(where, f"{item} has no {name}, which others have", hint=f"give every one its {name}")
            row += _numbers(where, f"{name} of {item}", values[name])
        if rows and len(row) != len(rows[0]):
            fail(where, f"{item} has {len(row)} numbers, others have {len(rows[0])}")
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), -1)


def _numbers(where: str, what: str, value: Any) -> list[float]:
    try:
        numbers = [float(number) for number in torch.as_tensor(value).reshape(-1).tolist()]
    except (TypeError, ValueError, RuntimeError, OverflowError):
        fail(where, f"{what} is {shown(value)}, not a number or a list of numbers")
    if not all(math.isfinite(number) and abs(number) < LARGEST_NUMBER for number in numbers):
        fail(where, f"{what} is not finite, or larger than {LARGEST_NUMBER:g}")
    return numbers


def _expanded(names: Sequence[str], items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a name for every column: `size`, or `size[0]` and `size[1]` for a sequence."""
    first = next(iter(items), {})
    expanded = []
    for name in names:
        width = torch.as_tensor(first.get(name, 0.0)).numel()
        expanded += [name] if width == 1 else [f"{name}[{column}]" for column in range(width)]
    return expanded
