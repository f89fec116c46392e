"""Sets of graphs: all formats give the same graph, bad files are named with their line, splits never mix."""

import contextlib
import json

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch_geometric.data import Data, HeteroData, InMemoryDataset

import edgewise as ew
from edgewise.config.errors import ConfigError, DataError
from edgewise.graphs.datasets import read_graphs
from edgewise.graphs.graph_files import READERS, read_graph_file
from edgewise.graphs.graph_set import SPLITS
from edgewise.graphs.graph_store import dump_graph_set, load_graph_set

GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="edge" attr.name="weight" attr.type="double"/>
  <graph edgedefault="undirected">
    <node id="0"/><node id="1"/><node id="2"/>
    <edge source="0" target="1"><data key="d0">1.5</data></edge>
    <edge source="1" target="2"><data key="d0">2</data></edge>
  </graph>
</graphml>
"""
NODE_LINK = {
    "nodes": [{"id": 0}, {"id": 1}, {"id": 2}],
    "links": [{"source": 0, "target": 1, "weight": 1.5}, {"source": 1, "target": 2, "weight": 2}],
}
SAME_GRAPH = {
    "path.graphml": GRAPHML,
    "path.edgelist": "# a comment\n0 1 1.5\n1 2 2\n",
    "path.txt": "% a comment\n\n0\t1\t1.5\n1\t2\t2.0\n",
    "path.csv": "source,target,weight\n0,1,1.5\n1,2,2\n",
    "bare.csv": "0,1,1.5\n1,2,2\n",
    "path.json": json.dumps(NODE_LINK),
    "edges.json": json.dumps({"nodes": NODE_LINK["nodes"], "edges": NODE_LINK["links"], "directed": False}),
}


def ring(size, shift=0.0):
    """A directed ring whose nodes count from `shift`."""
    node = torch.arange(size)
    return Data(
        x=(node.float() + shift).unsqueeze(-1),
        edge_index=torch.stack((node, (node + 1) % size)),
        num_nodes=size,
    )


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def path_of(length):
    return "".join(f"{node} {node + 1}\n" for node in range(length))


@pytest.mark.parametrize("name", SAME_GRAPH)
def test_every_format_gives_the_same_graph(tmp_path, name):
    write(tmp_path, {name: SAME_GRAPH[name]})
    found = ew.load_graphs(tmp_path / name, split="all")
    assert len(found) == 1
    assert found.graphs["node_mask"].tolist() == [[True] * 3]
    edges = dict(
        zip(
            map(tuple, found.graphs["edge_index"][0].T.tolist()),
            found.graphs["edge_attr"][0, :, 0].tolist(),
            strict=True,
        )
    )
    assert edges == {(0, 1): 1.5, (1, 0): 1.5, (1, 2): 2.0, (2, 1): 2.0}
    assert found.names.edge_features == ("weight",)


def test_networkx_and_files_have_one_fingerprint(tmp_path):
    graph = networkx.path_graph(3)
    networkx.set_edge_attributes(graph, {(0, 1): 1.5, (1, 2): 2.0}, "weight")
    given_fingerprint = ew.load_graphs([graph], split="all").fingerprint
    for name, text in SAME_GRAPH.items():
        write(tmp_path, {name: text})
        assert ew.load_graphs(tmp_path / name, split="all").fingerprint == given_fingerprint, name


def test_directed_edges_lead_one_way(tmp_path):
    write(
        tmp_path,
        {"a.edgelist": "# directed\n0 1\n1 2\n", "b.json": json.dumps({**NODE_LINK, "directed": True})},
    )
    assert ew.load_graphs(tmp_path / "a.edgelist", split="all").spec.edges.num_edges == 2
    assert ew.load_graphs(tmp_path / "b.json", split="all").spec.edges.num_edges == 2
    graph = networkx.DiGraph([(0, 1), (1, 2)])
    networkx.write_graphml(graph, tmp_path / "c.graphml")
    assert ew.load_graphs(tmp_path / "c.graphml", split="all").spec.edges.num_edges == 2


def test_attributes_become_features_positions_and_types(tmp_path):
    graph = networkx.Graph()
    graph.add_node("a", x=0.0, y=1.0, demand=3, open=True, type="depot", label="first")
    graph.add_node("b", x=2.0, y=0.5, demand=4, open=False, type="client", label="second")
    graph.add_edge("a", "b", length=2.5, type="road")
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    for source in ([graph], tmp_path / "g.graphml"):
        found = ew.load_graphs(source, split="all")
        assert found.names.node_features == ("demand", "open")
        assert found.names.edge_features == ("length", "type=road")
        assert found.names.node_types == ("client", "depot")
        assert found.graphs["x"][0].tolist() == [[3, 1], [4, 0]]
        assert found.graphs["pos"][0].tolist() == [[0, 1], [2, 0.5]]
        assert found.graphs["node_type"][0].tolist() == [1, 0]
        assert found.spec.edge_features == 2


def test_hetero_data_keeps_its_types():
    def one(shift):
        graph = HeteroData()
        graph["user"].x = torch.ones(2, 3) + shift
        graph["item"].x = torch.zeros(3, 1)
        graph["user", "buys", "item"].edge_index = torch.tensor([[0, 1], [2, 0]])
        graph["item", "like", "item"].edge_index = torch.tensor([[0], [1]])
        graph["item", "like", "item"].edge_attr = torch.tensor([[0.5]])
        return graph

    found = ew.load_graphs([one(0.0), one(1.0)], split="all")
    assert found.names.node_types == ("item", "user")
    assert found.names.edge_features == ("edge_attr[0]", "type=item__like__item", "type=user__buys__item")
    graph = found.graphs[0]
    assert graph["node_type"].tolist() == [1, 1, 0, 0, 0]
    assert graph["x"].shape == (5, 3)
    edges = {
        tuple(ends): values
        for ends, values in zip(graph["edge_index"].T.tolist(), graph["edge_attr"].tolist(), strict=True)
    }
    assert edges == {(0, 4): [0, 0, 1], (1, 2): [0, 0, 1], (2, 3): [0.5, 1, 0]}


class Rings(InMemoryDataset):
    """A PyG Dataset of rings."""

    def __init__(self, sizes):
        super().__init__()
        self.data, self.slices = self.collate([ring(size) for size in sizes])


def test_a_pyg_dataset_is_a_list_of_graphs():
    found = read_graphs(Rings(range(3, 23)))
    assert len(found) == 20
    assert [len(found.splits[split]) for split in SPLITS] == [16, 2, 2]
    assert found.fingerprint("test") == read_graphs([ring(size) for size in range(3, 23)]).fingerprint("test")


def test_the_split_by_content_depends_on_the_seed_alone():
    graphs = [ring(size) for size in range(3, 23)]
    first, other = read_graphs(graphs), read_graphs(graphs[::-1])
    assert {split: first.fingerprint(split) for split in SPLITS} == {
        split: other.fingerprint(split) for split in SPLITS
    }
    assert read_graphs(graphs, seed=1).fingerprint("test") != first.fingerprint("test")
    members = [number for split in SPLITS for number in first.splits[split]]
    assert sorted(members) == list(range(20))


def test_equal_graphs_stay_in_one_split():
    found = read_graphs([ring(size) for size in range(3, 13)] * 3)
    owner = {}
    for split in SPLITS:
        for number in found.splits[split]:
            assert owner.setdefault(found.hashes[number], split) == split


def test_folders_are_splits(tmp_path):
    write(
        tmp_path,
        {f"{split}/g{n}.txt": path_of(3 * n + k) for k, split in enumerate(SPLITS, 1) for n in (1, 2)},
    )
    (tmp_path / "README.md").write_text("what this is")
    found = read_graphs(str(tmp_path))
    assert {split: len(members) for split, members in found.splits.items()} == {
        "train": 2,
        "valid": 2,
        "test": 2,
    }
    assert ew.load_graphs(tmp_path, split="test").spec.num_nodes == 10
    assert ew.load_graphs(tmp_path, split="train").spec.num_nodes == 8


def test_a_planted_leak_is_refused(tmp_path):
    write(tmp_path, {"train/a.txt": path_of(3), "train/b.txt": path_of(4), "test/c.csv": "2,3\n0,1\n1,2\n"})
    with pytest.raises(
        DataError, match=r"c\.csv of the split test is the same graph as .*a\.txt of the split train"
    ):
        read_graphs(tmp_path)
    with pytest.raises(DataError, match="same graph"):
        read_graphs({"train": [ring(3), ring(4)], "valid": [ring(5)], "test": [ring(4)]})


def test_a_file_in_no_split_is_refused(tmp_path):
    write(tmp_path, {"train/a.txt": path_of(3), "b.txt": path_of(4)})
    with pytest.raises(DataError, match=r"b\.txt is beside the folders train"):
        read_graphs(tmp_path)


def test_an_empty_split_is_named(tmp_path):
    write(tmp_path, {"train/a.txt": path_of(3)})
    with pytest.raises(DataError, match="the split valid has no graph"):
        ew.load_graphs(tmp_path, split="valid")
    with pytest.raises(DataError, match="the split test has no graph"):
        ew.load_graphs([ring(3)], split="test")
    with pytest.raises(ConfigError, match="expected train, valid, test or all"):
        ew.load_graphs([ring(3)], split="dev")


BAD = {
    "a.edgelist": ("0 1\n1\n", r"a\.edgelist:2: 1 column"),
    "b.txt": ("0 1 2\n1 2\n", r"b\.txt:2: 2 columns, but 3 in line 1"),
    "c.csv": ("source,target,weight\n0,1,heavy\n", r"c\.csv:2: weight is 'heavy', not a number"),
    "d.csv": ("source,target,weight\n0,1\n", r"d\.csv:2: 2 columns, but 3 in the header"),
    "e.txt": ("# nothing\n", r"e\.txt: holds no edge"),
    "f.json": ('{"nodes": [}', r"f\.json:1: not JSON"),
    "g.json": ("[1, 2]", r"g\.json: an object with nodes and links"),
    "h.json": ('{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 7}]}', r"links\[0\] ends at 7"),
    "i.json": ('{"nodes": [{"id": 0}, {"id": 0}], "links": []}', r"nodes\[1\]: a second node 0"),
    "j.graphml": ("<graphml>\n<graph>\n<node/>", r"j\.graphml:3: <node> without id"),
    "k.graphml": ("<graphml>\n<graph>\n</graphml>", r"k\.graphml:3: not XML"),
    "l.graphml": (GRAPHML.replace('target="2"', 'target="9"'), r"l\.graphml:7: an edge ends at '9'"),
    "m.graphml": (GRAPHML.replace(">2<", ">two<"), r"m\.graphml:7: weight is 'two', declared as double"),
    "n.graphml": ('<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', r"n\.graphml:1: a document type declaration"),
    "o.graphml": ("<graphml/>", r"o\.graphml: holds no graph"),
    "p.json": ('{"nodes": [{"id": 0, "a": 1}, {"id": 1}], "links": []}', r"p\.json: node 1 has no a"),
    "q.json": (
        '{"nodes": [{"id": 0, "a": 1e999}], "links": []}',
        "q.json: not accepted as JSON: a number",
    ),
    "r.json": ('{"nodes": [], "links": []}', r"r\.json: has no node"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_with_its_line(tmp_path, name):
    text, message = BAD[name]
    write(tmp_path, {name: text})
    with pytest.raises(DataError, match=message):
        read_graphs(tmp_path / name)


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0 1\n\xff\xfe 2\n")
    with pytest.raises(DataError, match=r"a\.txt:2: byte 0xff is not UTF-8"):
        read_graphs(tmp_path)
    with pytest.raises(DataError, match="no such folder or file"):
        read_graphs(tmp_path / "nowhere")
    (tmp_path / "b.pt").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"b\.pt: files \.pt cannot be read"):
        read_graphs(tmp_path / "b.pt")
    (tmp_path / "empty" / "val").mkdir(parents=True)
    with pytest.raises(DataError, match="holds no graph; it has subfolders val"):
        read_graphs(tmp_path / "empty")
    with pytest.raises(ConfigError, match="not set"):
        ew.load_graphs(None)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "the list is empty"),
        ([1, 2], "got int"),
        ([ring(3), networkx.path_graph(3)], "got Data, Graph"),
        (7, "expected a list of graphs"),
        ([Data(x=torch.zeros(2, 1))], r"graphs\[0\]: has no edge_index"),
        ([Data(num_nodes=2, edge_index=torch.tensor([[0], [2]]))], "targets go from 2 to 2"),
        ([Data(num_nodes=2, edge_index=torch.zeros(2, 1))], r"edge_index is \[2, 1\] torch.float32"),
        ([Data(x=torch.full((2, 1), torch.nan), edge_index=torch.empty(2, 0).long())], "not finite"),
        ([ring(3), Data(x=torch.zeros(3, 2), edge_index=torch.empty(2, 0).long())], "2 columns of x, but 1"),
        ([ring(3), Data(num_nodes=3, edge_index=torch.empty(2, 0).long())], r"graphs\[1\]: has no x"),
        ({"train": [ring(3)], "dev": [ring(4)]}, "a split dev"),
    ],
)
def test_bad_objects_are_named(graphs, message):
    with pytest.raises(DataError, match=message):
        read_graphs(graphs)


@settings(max_examples=150)
@given(suffix=st.sampled_from(sorted(READERS)), content=st.binary(max_size=80) | st.text(max_size=80))
def test_any_content_gives_a_graph_or_a_data_error(tmp_path_factory, suffix, content):
    path = tmp_path_factory.mktemp("any") / f"g{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(DataError):
        ew.load_graphs(path, split="all")


def test_a_stored_set_is_the_same_set(tmp_path):
    found = read_graphs([ring(size, shift=0.5) for size in range(3, 13)])
    path = tmp_path / "graphs.safetensors"
    path.write_bytes(dump_graph_set(found))
    again = load_graph_set(path)
    assert again.name == found.name
    assert again.splits == found.splits
    assert ew.load_graphs(path, split="test").fingerprint == found.fingerprint("test")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        load_graph_set(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read"):
        load_graph_set(path)


def test_a_stored_set_with_a_planted_leak_is_refused(tmp_path):
    found = read_graphs([ring(size) for size in range(3, 13)])
    object.__setattr__(found, "splits", {**found.splits, "test": found.splits["train"][:1]})
    path = tmp_path / "graphs.safetensors"
    path.write_bytes(dump_graph_set(found))
    with pytest.raises(DataError, match="same graph"):
        load_graph_set(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("edge_index", torch.full((2, 75), 99)),
        ("edge_index", torch.zeros(2, 75)),
        ("num_nodes", torch.tensor(-1)),
        ("num_nodes", torch.arange(10)),
        ("x", torch.full((75, 1), torch.nan)),
        ("node_type", torch.full((75,), -1)),
    ],
)
def test_a_hostile_stored_set_is_refused(tmp_path, key, value):
    content = dump_graph_set(read_graphs([ring(size) for size in range(3, 13)]))
    header = safe_header(content)
    path = tmp_path / "graphs.safetensors"
    path.write_bytes(save({**load(content), key: value}, metadata=header))
    with pytest.raises(DataError):
        load_graph_set(path)


def test_a_stored_set_with_foreign_splits_is_refused(tmp_path):
    content = dump_graph_set(read_graphs([ring(size) for size in range(3, 13)]))
    plain = json.loads(safe_header(content)["graphs"])
    path = tmp_path / "graphs.safetensors"
    for change in (
        {"splits": {"train": [0], "test": [77]}},
        {"splits": {"train": [77]}},
        {"splits": 3},
        {"labels": []},
        {"format": "x"},
    ):
        path.write_bytes(save(load(content), metadata={"graphs": json.dumps({**plain, **change})}))
        with pytest.raises(DataError):
            load_graph_set(path)


def safe_header(content):
    """The metadata of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length])["__metadata__"]


def test_a_changed_folder_is_read_again(tmp_path):
    write(tmp_path, {"a.txt": path_of(3), "b.txt": path_of(4), "c.txt": path_of(5)})
    assert len(read_graphs(tmp_path)) == 3
    write(tmp_path, {"d.txt": path_of(6)})
    assert len(read_graphs(tmp_path)) == 4


def test_worlds_draw_graphs_with_their_own_generator():
    instances = ew.load_graphs([ring(size) for size in range(3, 13)], split="train")
    one, other = (instances.sample(50, torch.Generator().manual_seed(0)) for _ in range(2))
    assert torch.equal(one, other)
    assert set(one.tolist()) <= set(range(len(instances)))
    assert instances[one].batch_size == (50,)


def test_a_graph_file_is_read_by_its_suffix(tmp_path):
    write(tmp_path, {"G.GRAPHML": GRAPHML})
    assert len(read_graph_file(tmp_path / "G.GRAPHML").nodes) == 3
