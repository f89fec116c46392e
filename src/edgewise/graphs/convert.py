"""Convert graphs from and to PyTorch Geometric and networkx."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from tensordict import TensorDict
from torch import Tensor
from torch_geometric.data import Batch, Data

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology
from edgewise.graphs.validate import validate

if TYPE_CHECKING:
    import networkx


def spec_for(graphs: Sequence[Data]) -> GraphSpec:
    """Return the smallest spec with explicit edges that holds all of `graphs`.

    Example:
        >>> path = Data(x=torch.zeros(3, 4), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> spec_for([path]).num_nodes
        3
    """
    if not graphs:
        raise ValueError("spec_for needs at least one graph, got none")
    types = [graph.node_type for graph in graphs if graph.get("node_type") is not None]
    edges = Explicit(max(graph.num_edges for graph in graphs), _width(graphs, "edge_attr"))
    return GraphSpec(
        max(graph.num_nodes for graph in graphs),
        _width(graphs, "x"),
        edges=edges,
        position_dim=_width(graphs, "pos"),
        node_types=max((int(kind.max()) + 1 for kind in types if kind.numel()), default=0),
        graph_features=max((graph.u.numel() for graph in graphs if graph.get("u") is not None), default=0),
    )


def from_pyg(graphs: Data | Batch | Sequence[Data], spec: GraphSpec | None = None) -> TensorDict:
    """Convert K Data objects, or a Batch of them, to padded graphs `[K]`; one Data gives batch size `[]`.

    Args:
        graphs: with `x [n, F]`, `edge_index [2, e]` and, if the spec has them, `edge_attr [e, D]`,
            `pos [n, P]`, `node_type [n]` and `u [G]` or `[1, G]`. With `Topology` edges each
            needs its `topology`; with edges computed from positions `edge_index` is ignored.
        spec: None for `spec_for` of these graphs.
    """
    if isinstance(graphs, Data) and not isinstance(graphs, Batch):
        return from_pyg([graphs], spec)[0]
    items = graphs.to_data_list() if isinstance(graphs, Batch) else list(graphs)
    spec = spec_for(items) if spec is None else spec
    padded = spec.zeros(len(items))
    for key, value in padded.items():
        if value.is_floating_point() and items:
            padded[key] = value.to(_float_type(items[0].get(key)))
    for number, graph in enumerate(items):
        _fill(padded[number], graph, spec, number)
    validate(padded, spec)
    return padded


def to_pyg(graph: TensorDict, spec: GraphSpec) -> list[Data]:
    """Convert padded graphs to one Data each, batch dimensions in row-major order, without padding.

    Edges are computed or looked up as the spec defines. `Batch.from_data_list` makes one Batch of the list.
    """
    return [_to_data(row, spec) for row in graph.reshape(math.prod(graph.batch_size))]


def _to_data(graph: TensorDict, spec: GraphSpec) -> Data:
    """Convert one padded graph, of batch size `[]`."""
    nodes, edges = graph["node_mask"], spec.edges_of(graph)
    links = edges.mask
    row = nodes.cumsum(0) - 1
    item = Data(x=graph["x"][nodes], edge_index=row[edges.index[:, links]], num_nodes=int(nodes.sum()))
    if edges.attr is not None:
        item.edge_attr = edges.attr[links]
    if spec.position_dim:
        item.pos = graph["pos"][nodes]
    if spec.node_types:
        item.node_type = graph["node_type"][nodes]
    if spec.graph_features:
        item.u = graph["u"].unsqueeze(0)
    if isinstance(spec.edges, Topology):
        item.topology = graph["topology"]
    return item


def from_networkx(
    graphs: networkx.Graph | Sequence[networkx.Graph],
    spec: GraphSpec | None = None,
    *,
    node_attributes: Sequence[str] = ("x",),
    edge_attributes: Sequence[str] = ("edge_attr",),
    graph_attributes: Sequence[str] = ("u",),
) -> TensorDict:
    """Convert networkx graphs to padded graphs `[K]`; one graph gives batch size `[]`.

    Nodes keep the order of networkx. An undirected edge becomes two directed ones. `pos` and `node_type` are
    read if nodes have them.

    Args:
        graphs: with any labels as nodes.
        spec: None for `spec_for` of these graphs.
        node_attributes: numbers or sequences of numbers on every node, concatenated into `x`.
        edge_attributes: the same on every edge, concatenated into `edge_attr`.
        graph_attributes: the same on every graph, concatenated into `u`.
    """
    named = node_attributes, edge_attributes, graph_attributes
    if isinstance(graphs, Sequence):
        return from_pyg([_from_networkx(graph, *named) for graph in graphs], spec)
    return from_pyg(_from_networkx(graphs, *named), spec)


def to_networkx(graph: TensorDict, spec: GraphSpec) -> list[networkx.DiGraph]:
    """Convert padded graphs to one directed networkx graph each, batch dimensions in row-major order.

    Nodes are `0 .. n - 1` with `x`, `pos` and `node_type`, edges have `edge_attr`, the graph has `u`, all as
    lists of numbers. A graph with parallel edges becomes a MultiDiGraph.
    """
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs networkx: pip install networkx") from error
    return [_to_networkx(item, networkx) for item in to_pyg(graph, spec)]


def _fill(padded: TensorDict, graph: Data, spec: GraphSpec, number: int) -> None:
    """Write one graph into its row of `padded`."""
    nodes, name = int(graph.num_nodes), f"graph[{number}]"
    if nodes > spec.num_nodes:
        raise ValueError(
            f"{name}: {nodes} nodes, but the spec has room for {spec.num_nodes}: raise num_nodes"
        )
    padded["node_mask"][:nodes] = True
    _write(padded, "x", graph, nodes, name)
    if spec.position_dim:
        _write(padded, "pos", graph, nodes, name)
    if spec.node_types:
        _write(padded, "node_type", graph, nodes, name)
    if spec.graph_features:
        _write_graph_features(padded, graph, spec.graph_features, name)
    if isinstance(spec.edges, Explicit):
        _fill_edges(padded, graph, spec.edges, name)
    if isinstance(spec.edges, Topology):
        _fill_topology(padded, graph, spec, name)


def _fill_edges(padded: TensorDict, graph: Data, edges: Explicit, name: str) -> None:
    count, nodes, index = int(graph.num_edges), int(graph.num_nodes), graph.edge_index
    if count > edges.num_edges:
        raise ValueError(
            f"{name}: {count} edges, but the spec has room for {edges.num_edges}: raise num_edges"
        )
    if count == 0:
        return
    if index.dtype != torch.int64:
        raise ValueError(f"{name}.edge_index: dtype is {index.dtype}, must be int64")
    lowest, highest = int(index.min()), int(index.max())
    if lowest < 0 or highest >= nodes:
        raise ValueError(f"{name}.edge_index: from {lowest} to {highest}, but nodes are 0 .. {nodes - 1}")
    padded["edge_index"][:, :count] = index
    padded["edge_mask"][:count] = True
    if edges.num_features:
        _write(padded, "edge_attr", graph, count, name)


def _write_graph_features(padded: TensorDict, graph: Data, count: int, name: str) -> None:
    values = graph.get("u")
    if values is None:
        raise ValueError(f"{name}.u: missing, but the spec requires it")
    if values.numel() != count:
        raise ValueError(f"{name}.u: shape is {list(values.shape)}, the spec requires [{count}]")
    padded["u"].copy_(values.reshape(-1))


def _fill_topology(padded: TensorDict, graph: Data, spec: GraphSpec, name: str) -> None:
    """Write the topology id; edges, if given as well, must be those of the topology."""
    if graph.get("topology") is None:
        raise ValueError(f"{name}.topology: missing, but the spec looks edges up by it")
    padded["topology"].fill_(int(graph.topology))
    validate(padded, spec, name=name)
    edges = spec.edges_of(padded)
    if graph.edge_index is not None and not torch.equal(graph.edge_index, edges.index[:, edges.mask]):
        raise ValueError(
            f"{name}.edge_index: not the edges of topology {int(graph.topology)}; "
            "use explicit edges for a graph without some of its nodes"
        )


def _write(padded: TensorDict, key: str, graph: Data, count: int, name: str) -> None:
    """Copy `count` rows of `graph[key]` after checking their shape."""
    place, values = padded[key], graph.get(key)
    if count == 0 or place.shape[-1] == 0:
        return
    if values is None:
        raise ValueError(f"{name}.{key}: missing, but the spec requires it")
    values = values.unsqueeze(-1) if values.dim() < place.dim() else values
    expected = [count, *place.shape[1:]]
    if list(values.shape) != expected:
        raise ValueError(f"{name}.{key}: shape is {list(values.shape)}, the spec requires {expected}")
    place[:count] = values


def _width(graphs: Sequence[Data], key: str) -> int:
    """Return the width of `key` in the graphs that have it; zero if none has."""
    found = [graph[key] for graph in graphs if graph.get(key) is not None]
    return max((1 if values.dim() == 1 else values.shape[-1] for values in found), default=0)


def _float_type(values: Tensor | None) -> torch.dtype:
    return values.dtype if values is not None and values.is_floating_point() else torch.get_default_dtype()


def _from_networkx(
    graph: Any,
    node_attributes: Sequence[str],
    edge_attributes: Sequence[str],
    graph_attributes: Sequence[str],
) -> Data:
    place = {label: number for number, label in enumerate(graph.nodes)}
    nodes = [attributes for _, attributes in graph.nodes(data=True)]
    edges = [
        (place[source], place[target], attributes) for source, target, attributes in graph.edges(data=True)
    ]
    if not graph.is_directed():
        edges += [(target, source, attributes) for source, target, attributes in edges if source != target]
    ends = torch.tensor([edge[:2] for edge in edges], dtype=torch.int64).reshape(len(edges), 2).T
    types = [attributes["node_type"] for attributes in nodes if "node_type" in attributes]
    return Data(
        x=_columns(nodes, node_attributes),
        edge_index=ends,
        edge_attr=_columns([edge[2] for edge in edges], edge_attributes),
        pos=_columns(nodes, ("pos",)),
        node_type=torch.tensor(types) if len(types) == len(nodes) and nodes else None,
        u=_columns([graph.graph], graph_attributes),
        num_nodes=len(nodes),
    )


def _columns(items: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Tensor | None:
    """Concatenate the named attributes of all items, `[len(items), width]`; None if no item has any."""
    found = [key for key in keys if any(key in item for item in items)]
    if not found:
        return None
    for number, item in enumerate(items):
        for key in found:
            if key not in item:
                raise ValueError(f"attribute {key!r} is on some items but not on number {number}")
    return torch.stack(
        [torch.cat([torch.as_tensor(item[key]).float().reshape(-1) for key in found]) for item in items]
    )


def _to_networkx(item: Data, networkx: Any) -> Any:
    pairs = item.edge_index.T.tolist()
    parallel = len(set(map(tuple, pairs))) < len(pairs)
    graph = (networkx.MultiDiGraph if parallel else networkx.DiGraph)()
    if item.get("u") is not None:
        graph.graph["u"] = item.u.reshape(-1).tolist()
    lists = {key: item[key].tolist() for key in ("x", "pos", "node_type") if item.get(key) is not None}
    for number in range(int(item.num_nodes)):
        graph.add_node(number, **{key: values[number] for key, values in lists.items()})
    attributes = (
        [{}] * len(pairs)
        if item.edge_attr is None
        else [{"edge_attr": row} for row in item.edge_attr.tolist()]
    )
    for (source, target), attribute in zip(pairs, attributes, strict=True):
        graph.add_edge(source, target, **attribute)
    return graph
