"""Graphs from and to PyTorch Geometric and networkx: there and back."""

import math

import pytest
import torch
from hypothesis import given
from tests.graphs.random_graphs import kinds, leads, random_graph, random_spec, seeds, sizes
from torch_geometric.data import Batch, Data

from edgewise.graphs.convert import from_networkx, from_pyg, spec_for, to_networkx, to_pyg
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology
from edgewise.models.bridge import union

networkx = pytest.importorskip("networkx")

KEYS = ("x", "edge_index", "edge_attr", "pos", "node_type")


def assert_equal_data(one, other):
    assert one.num_nodes == other.num_nodes
    for key in KEYS:
        if key in one or key in other:
            torch.testing.assert_close(one[key], other[key], rtol=0, atol=0)


@given(kind=kinds, lead=leads, num_nodes=sizes, seed=seeds)
def test_out_in_and_out_again_is_the_same(kind, lead, num_nodes, seed):
    spec = random_spec(kind, num_nodes, seed=seed, node_types=2)
    graph = random_graph(spec, lead, seed=seed, keep=1.0 if kind == "topology" else 0.7)
    items = to_pyg(graph, spec)
    assert len(items) == math.prod(lead)
    again = to_pyg(from_pyg(items, spec), spec)
    for one, other in zip(items, again, strict=True):
        assert_equal_data(one, other)


@given(kind=kinds, seed=seeds)
def test_a_list_batched_by_pyg_is_the_compact_union(kind, seed):
    spec = random_spec(kind, seed=seed)
    graph = random_graph(spec, (2, 3), seed=seed)
    batch = Batch.from_data_list(to_pyg(graph, spec))
    flat = union(graph, spec, compact=True)
    for key in ("x", "edge_index", "edge_attr", "pos", "batch"):
        if getattr(flat, key) is not None:
            assert torch.equal(batch[key], getattr(flat, key))


def test_what_comes_in_is_what_is_in_the_data():
    first = Data(
        x=torch.tensor([[1.0], [2.0]]), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.tensor([7.0])
    )
    second = Data(x=torch.tensor([[3.0]]), edge_index=torch.zeros(2, 0).long(), edge_attr=torch.zeros(0))
    spec = spec_for([first, second])
    assert spec == GraphSpec(2, 1, edges=Explicit(1, 1))
    for graphs in ([first, second], Batch.from_data_list([first, second])):
        graph = from_pyg(graphs)
        assert graph.batch_size == (2,)
        assert graph["x"].tolist() == [[[1.0], [2.0]], [[3.0], [0.0]]]
        assert graph["node_mask"].tolist() == [[True, True], [True, False]]
        assert graph["edge_index"].tolist() == [[[0], [1]], [[0], [0]]]
        assert graph["edge_mask"].tolist() == [[True], [False]]
        assert graph["edge_attr"].tolist() == [[[7.0]], [[0.0]]]


def test_one_data_gives_a_graph_without_leading_dimension():
    data = Data(x=torch.zeros(3, 2, dtype=torch.float64), edge_index=torch.tensor([[0, 1], [1, 2]]))
    graph = from_pyg(data)
    assert graph.batch_size == ()
    assert graph["x"].dtype == torch.float64


def test_the_smallest_spec_that_holds_all():
    graphs = [
        Data(
            x=torch.zeros(nodes, 3),
            edge_index=torch.zeros(2, edges).long(),
            pos=torch.zeros(nodes, 2),
            node_type=torch.full((nodes,), nodes - 2),
        )
        for nodes, edges in ((2, 7), (5, 1))
    ]
    assert spec_for(graphs) == GraphSpec(5, 3, edges=Explicit(7), position_dim=2, node_types=4)


def test_topologies_keep_their_id():
    spec = random_spec("topology")
    graph = random_graph(spec, (4,), keep=1.0)
    assert isinstance(spec.edges, Topology)
    assert torch.equal(from_pyg(to_pyg(graph, spec), spec)["topology"], graph["topology"])


@given(kind=kinds, lead=leads, seed=seeds)
def test_networkx_there_and_back(kind, lead, seed):
    spec = random_spec(kind, seed=seed, node_types=2)
    graph = random_graph(spec, lead, seed=seed)
    items = to_pyg(graph, spec)
    drawn = to_networkx(graph, spec)
    for item, network in zip(items, drawn, strict=True):
        assert network.number_of_nodes() == item.num_nodes
        ends = sorted(map(tuple, item.edge_index.T.tolist()))
        assert sorted(network.edges()) == ends
        assert network.is_multigraph() == (len(set(ends)) < len(ends))
    if not items:
        return
    wide = GraphSpec(6, 3, edges=Explicit(36, spec.edge_features), position_dim=2, node_types=2)
    back = to_pyg(from_networkx(drawn, wide), wide)
    for item, other in zip(items, back, strict=True):
        order, other_order = edge_order(item), edge_order(other)
        assert torch.equal(item.edge_index[:, order], other.edge_index[:, other_order])
        torch.testing.assert_close(item.x.float(), other.x.float())
        torch.testing.assert_close(item.pos.float(), other.pos.float())
        assert torch.equal(item.node_type, other.node_type)
        if spec.edge_features:
            torch.testing.assert_close(item.edge_attr[order].float(), other.edge_attr[other_order].float())


def edge_order(item):
    """Edges sorted by ends and then features: networkx keeps parallel edges but not the order of all."""
    attr = torch.zeros(item.num_edges, 0) if item.edge_attr is None else item.edge_attr.float()
    keys = [(*ends, *row) for ends, row in zip(item.edge_index.T.tolist(), attr.tolist(), strict=True)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def test_an_undirected_edge_runs_both_ways():
    network = networkx.Graph()
    network.add_node("a", demand=1, size=[2, 3])
    network.add_node("b", demand=4, size=[5, 6])
    network.add_edge("a", "b", length=0.5)
    network.add_edge("b", "b", length=0.25)
    graph = from_networkx(network, node_attributes=("demand", "size"), edge_attributes=("length",))
    assert graph["x"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert graph["edge_index"].tolist() == [[0, 1, 1], [1, 1, 0]]
    assert graph["edge_attr"].tolist() == [[0.5], [0.25], [0.5]]


def test_a_bare_networkx_graph():
    graph = from_networkx([networkx.path_graph(3), networkx.empty_graph(1)])
    assert graph["x"].shape == (2, 3, 0)
    assert graph["edge_mask"].sum(-1).tolist() == [4, 0]
