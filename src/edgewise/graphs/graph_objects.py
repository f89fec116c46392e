"""Convert graphs given as Python objects: PyG Data and HeteroData, and networkx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from edgewise.config.errors import DataError
from edgewise.graphs.raw_graph import Names, RawGraph, fail, to_data

HINT = "give PyG Data, HeteroData or networkx graphs, all of one kind"
NODE_KEYS = ("x", "pos", "node_type")


def from_objects(source: Any) -> tuple[list[Data], list[str], Names]:
    """Convert a sequence or PyG Dataset of graphs; return them with a label each, and what columns mean.

    Raises:
        DataError: an object is not a graph, or its tensors do not fit each other.
    """
    try:
        graphs = [source[number] for number in range(len(source))]
    except (TypeError, KeyError):
        raise DataError(
            f"graphs: got {type(source).__name__}, expected a list of graphs", hint=HINT
        ) from None
    labels = [f"graphs[{number}]" for number in range(len(graphs))]
    if not graphs:
        raise DataError("graphs: the list is empty", hint=HINT)
    if all(isinstance(graph, HeteroData) for graph in graphs):
        converted, names = _from_hetero(graphs, labels)
    elif all(isinstance(graph, Data) for graph in graphs):
        converted, names = (
            [checked_data(graph, label) for graph, label in zip(graphs, labels, strict=True)],
            Names(),
        )
    elif all(hasattr(graph, "nodes") and hasattr(graph, "is_directed") for graph in graphs):
        converted, names = to_data(
            [_from_networkx(graph, label) for graph, label in zip(graphs, labels, strict=True)]
        )
    else:
        kinds = sorted({type(graph).__name__ for graph in graphs})
        raise DataError(f"graphs: got {', '.join(kinds)}", hint=HINT)
    return converted, labels, names


def _from_networkx(graph: Any, label: str) -> RawGraph:
    index = {node: number for number, node in enumerate(graph.nodes)}
    return RawGraph(
        label,
        [str(node) for node in index],
        [attributes for _, attributes in graph.nodes(data=True)],
        [(index[source], index[target], values) for source, target, values in graph.edges(data=True)],
        bool(graph.is_directed()),
        graph.graph,
    )


def checked_data(graph: Data, label: str) -> Data:
    """Return the entries of a Data that an environment can use.

    Raises:
        DataError: its tensors do not fit each other, or are not finite.
    """
    nodes = graph.num_nodes
    if nodes is None:
        fail(label, "the number of nodes is unknown", hint="set x or num_nodes")
    index = _edge_index(graph.get("edge_index"), label, sources=nodes, targets=nodes)
    weights = graph.get("edge_attr")
    weights = graph.get("edge_weight") if weights is None else weights
    return Data(
        **{key: _rows(graph.get(key), nodes, f"{label}.{key}") for key in NODE_KEYS},
        u=_graph_row(graph.get("u"), label),
        edge_index=index,
        edge_attr=_rows(weights, index.shape[1], f"{label}.edge_attr"),
        num_nodes=nodes,
    )


def _from_hetero(graphs: Sequence[HeteroData], labels: Sequence[str]) -> tuple[list[Data], Names]:
    """Number the nodes of all types one after another; edge types become one-hot columns of `edge_attr`."""
    kinds = sorted({kind for graph in graphs for kind in graph.node_types})
    relations = sorted({kind for graph in graphs for kind in graph.edge_types})
    width = max((_columns(graph[kind].get("x")) for graph in graphs for kind in graph.node_types), default=0)
    own = max(
        (_columns(graph[kind].get("edge_attr")) for graph in graphs for kind in graph.edge_types), default=0
    )
    converted = [
        _one_hetero(graph, label, kinds, relations, width, own)
        for graph, label in zip(graphs, labels, strict=True)
    ]
    names = Names(
        node_features=tuple(f"x[{column}]" for column in range(width)),
        edge_features=(
            *(f"edge_attr[{column}]" for column in range(own)),
            *(f"type={'__'.join(kind)}" for kind in relations),
        ),
        node_types=tuple(kinds),
    )
    return converted, names


def _one_hetero(
    graph: HeteroData,
    label: str,
    kinds: Sequence[str],
    relations: Sequence[tuple[str, str, str]],
    width: int,
    own: int,
) -> Data:
    first, total, types = {}, 0, []
    blocks: dict[str, list[Tensor]] = {"x": [], "pos": []}
    for kind in graph.node_types:
        count = graph[kind].num_nodes
        if count is None:
            fail(label, f"the number of nodes of type {kind} is unknown", hint="set x or num_nodes")
        first[kind], total = total, total + count
        types.append(torch.full((count,), kinds.index(kind)))
        blocks["x"].append(_padded(_rows(graph[kind].get("x"), count, f"{label}[{kind!r}].x"), count, width))
        place = _rows(graph[kind].get("pos"), count, f"{label}[{kind!r}].pos")
        blocks["pos"] += [] if place is None else [place]
    if blocks["pos"] and len(blocks["pos"]) < len(first):
        fail(
            label, "some node types have pos and others have none", hint="give all of them positions, or none"
        )
    index, values = [torch.empty(2, 0, dtype=torch.int64)], [torch.empty(0, own + len(relations))]
    for relation in graph.edge_types:
        source, target = relation[0], relation[2]
        where = f"{label}[{relation}]"
        ends = _edge_index(
            graph[relation].get("edge_index"),
            where,
            sources=graph[source].num_nodes,
            targets=graph[target].num_nodes,
        )
        count = ends.shape[1]
        index.append(ends + torch.tensor([[first[source]], [first[target]]]))
        features = _padded(_rows(graph[relation].get("edge_attr"), count, f"{where}.edge_attr"), count, own)
        shown = torch.zeros(count, len(relations))
        shown[:, relations.index(relation)] = 1.0
        values.append(torch.cat((features, shown), 1))
    return Data(
        x=torch.cat(blocks["x"]) if width else None,
        pos=torch.cat(blocks["pos"]) if blocks["pos"] else None,
        node_type=torch.cat(types) if types else None,
        edge_index=torch.cat(index, 1),
        edge_attr=torch.cat(values),
        u=_graph_row(graph.get("u"), label),
        num_nodes=total,
    )


def _graph_row(values: Any, label: str) -> Tensor | None:
    """Return the features of a whole graph as one row, `[1, G]`; None stays None."""
    if values is None:
        return None
    if (
        not isinstance(values, Tensor)
        or values.dim() not in (1, 2)
        or (values.dim() == 2 and len(values) != 1)
    ):
        got = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        fail(f"{label}.u", f"got {got}, expected [G] or [1, G]")
    return _rows(values.reshape(1, -1), 1, f"{label}.u")


def _edge_index(index: Any, where: str, *, sources: int, targets: int) -> Tensor:
    if index is None:
        fail(where, "has no edge_index", hint="give an empty [2, 0] tensor for a graph without edges")
    if not isinstance(index, Tensor) or index.dim() != 2 or len(index) != 2 or index.dtype != torch.int64:
        got = f"{list(index.shape)} {index.dtype}" if isinstance(index, Tensor) else type(index).__name__
        fail(where, f"edge_index is {got}, expected [2, E] int64")
    for end, row, count in (("sources", index[0], sources), ("targets", index[1], targets)):
        if row.numel() and (int(row.min()) < 0 or int(row.max()) >= count):
            fail(where, f"{end} go from {int(row.min())} to {int(row.max())}, but nodes are 0 .. {count - 1}")
    return index.detach().cpu()


def _rows(values: Any, count: int, where: str) -> Tensor | None:
    """Return a tensor of `count` finite rows on the CPU; None stays None."""
    if values is None:
        return None
    if not isinstance(values, Tensor) or values.dim() not in (1, 2) or len(values) != count:
        got = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        fail(where, f"got {got}, expected one row for each of {count}")
    values = values.detach().cpu()
    if where.endswith(".node_type"):
        return values.long()
    values = values.float()
    if not values.isfinite().all():
        fail(where, "holds a number that is not finite")
    return values.unsqueeze(-1) if values.dim() == 1 else values


def _columns(values: Any) -> int:
    if not isinstance(values, Tensor):
        return 0
    return 1 if values.dim() == 1 else int(values.shape[-1])


def _padded(values: Tensor | None, count: int, width: int) -> Tensor:
    """Return `[count, width]`: the values, then zeros."""
    padded = torch.zeros(count, width)
    if values is not None:
        padded[:, : values.shape[-1]] = values
    return padded
