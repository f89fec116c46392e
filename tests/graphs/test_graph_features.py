"""Features of whole graphs, `u`: from files, networkx and PyG into padded graphs, and back."""

import networkx
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

import edgewise as ew
from edgewise.config.errors import DataError
from edgewise.graphs.convert import from_networkx, from_pyg, spec_for, to_networkx, to_pyg
from edgewise.graphs.datasets import load_graphs, read_graphs
from edgewise.graphs.graph_store import dump_graph_set, load_graph_set
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.validate import validate
from edgewise.models.bridge import union

GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="b" for="graph" attr.name="budget" attr.type="double"/>
<key id="t" for="graph" attr.name="tax" attr.type="double"><default>0.5</default></key>
<key id="s" for="graph" attr.name="town" attr.type="string"/>
<graph edgedefault="undirected"><data key="b">7.5</data><data key="s">Ghent</data>
<node id="0"/><node id="1"/><edge source="0" target="1"/></graph></graphml>"""


def data(*values, nodes=2):
    return Data(x=torch.ones(nodes, 1), edge_index=torch.zeros(2, 0).long(), u=torch.tensor([values]))


def test_pyg_there_and_back():
    graphs = [data(1.0, 2.0), data(3.0, 4.0, nodes=3)]
    spec = spec_for(graphs)
    assert spec.graph_features == 2
    for given in (graphs, Batch.from_data_list(graphs)):
        padded = from_pyg(given)
        assert padded["u"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert [item.u.tolist() for item in to_pyg(padded, spec)] == [[[1.0, 2.0]], [[3.0, 4.0]]]
    with pytest.raises(ValueError, match=r"graph\[1\].u: shape is \[1, 1\], the spec requires \[2\]"):
        from_pyg([graphs[0], data(1.0)], spec)
    with pytest.raises(ValueError, match=r"graph\[0\].u: missing"):
        from_pyg([Data(x=torch.ones(1, 1), edge_index=torch.zeros(2, 0).long())], spec)


def test_networkx_there_and_back():
    graph = networkx.path_graph(3)
    graph.graph |= {"u": [1.0, 2.0], "budget": 5, "name": "a path"}
    padded = from_networkx(graph, node_attributes=(), graph_attributes=("budget", "u"))
    assert padded["u"].tolist() == [5.0, 1.0, 2.0]
    spec = spec_for(to_pyg(padded, GraphSpec(3, 0, ew.Explicit(4), graph_features=3)))
    assert to_networkx(padded, spec)[0].graph["u"] == [5.0, 1.0, 2.0]


def test_files_and_objects_give_the_same_features(tmp_path):
    (tmp_path / "a.graphml").write_text(GRAPHML)
    (tmp_path / "b.json").write_text(
        '{"graph": {"budget": 7.5, "tax": 0.5, "town": "Bruges"}, "nodes": [{"id": 0}, {"id": 1}],'
        ' "links": [{"source": 0, "target": 1}]}'
    )
    graph = networkx.Graph([(0, 1)], budget=7.5, tax=0.5)
    for source in (tmp_path, [graph, graph]):
        found = read_graphs(source)
        assert found.names.graph_features == ("budget", "tax")
        assert len(set(found.hashes)) == 1
        instances = load_graphs(source, split="all")
        assert instances.spec.graph_features == 2
        assert instances.graphs["u"].tolist() == [[7.5, 0.5]] * 2


def test_a_stored_set_keeps_them(tmp_path):
    found = read_graphs([networkx.Graph([(0, 1)], tax=float(number)) for number in range(3)])
    (tmp_path / "set").write_bytes(dump_graph_set(found))
    again = load_graph_set(tmp_path / "set")
    assert again.names == found.names
    assert again.hashes == found.hashes
    assert len(set(found.hashes)) == 3


def test_hetero_data_keeps_them():
    graph = HeteroData()
    graph["a"].x = torch.ones(2, 1)
    graph["a", "to", "a"].edge_index = torch.tensor([[0], [1]])
    graph.u = torch.tensor([3.0, 4.0])
    assert load_graphs([graph], split="all").graphs["u"].tolist() == [[3.0, 4.0]]


def test_what_does_not_fit_is_named():
    with pytest.raises(DataError, match=r"graphs\[1\]: the graph has no tax"):
        read_graphs([networkx.Graph([(0, 1)], tax=1.0), networkx.Graph([(0, 1)])])
    with pytest.raises(DataError, match=r"graphs\[0\]\.u: got \[2, 2\], expected \[G\] or \[1, G\]"):
        read_graphs([Data(u=torch.ones(2, 2), num_nodes=2, edge_index=torch.zeros(2, 0).long())])
    spec = GraphSpec(2, 1, graph_features=2)
    graph = spec.zeros(3)
    graph["u"] = torch.full((3, 2), torch.nan)
    with pytest.raises(ValueError, match=r"graph\[0\]\.u: NaN at feature 0"):
        validate(graph, spec)
    with pytest.raises(ValueError, match="graph_features must be an integer of at least 0"):
        GraphSpec(2, 1, graph_features=-1)


@pytest.mark.parametrize("compact", [True, False])
def test_the_union_has_a_row_for_each_graph_and_one_for_the_sink(compact):
    spec = GraphSpec(3, 1, graph_features=2)
    graph = spec.zeros(2)
    graph["node_mask"] = torch.tensor([[True, True, False], [True, False, False]])
    graph["u"] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    flat = union(graph, spec, compact=compact)
    assert flat.u.tolist() == [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]
    slots = flat.nodes(flat.u[flat.batch])
    expected = graph["u"].unsqueeze(1) * graph["node_mask"].unsqueeze(-1)
    assert torch.equal(slots, expected)
