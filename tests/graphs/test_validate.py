"""Bad graphs of every kind: each is refused with the graph and the field by name."""

import math

import pytest
import torch
from hypothesis import given
from tensordict import TensorDict
from tests.graphs.random_graphs import kinds, leads, random_graph, random_spec, seeds
from torch_geometric.data import Data

from edgewise.graphs.convert import from_networkx, from_pyg, spec_for
from edgewise.graphs.edges import Explicit
from edgewise.graphs.proximity import Nearest, Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.graphs.validate import validate

EXPLICIT = GraphSpec(4, 3, edges=Explicit(5, 2), position_dim=2, node_types=3)
RADIUS = GraphSpec(4, 3, edges=Radius(1.0), position_dim=2)
BANKED = GraphSpec(4, 3, edges=Topology(TopologyBank.from_edge_lists([[(0, 1)], [(1, 2)]])))


def good(spec, lead=(2, 3)):
    """A graph without fault: nodes 0 to 2 and edges 0 to 3 exist, junk is in the rest."""
    graph = random_graph(spec, lead, junk=False)
    graph["node_mask"] = (torch.arange(4) < 3).expand(*lead, 4).clone()
    if "edge_mask" in graph:
        graph["edge_mask"] = (torch.arange(5) < 4).expand(*lead, 5).clone()
        graph["edge_index"] = graph["edge_index"] % 3
        graph["edge_index"][..., 4] = 99
        graph["edge_attr"][..., 4, :] = math.nan
    graph["x"][..., 3, :] = math.nan
    return graph


def put(key, place, value):
    """Write one value into a good graph."""

    def spoil(graph):
        graph[key][place] = value
        return graph

    return spoil


def cast(key, dtype):
    """Give an entry another type."""

    def spoil(graph):
        graph[key] = graph[key].nan_to_num(0.0).to(dtype)
        return graph

    return spoil


def resize(key, change):
    """Give an entry another shape."""

    def spoil(graph):
        entries = dict(graph.items())
        entries[key] = change(entries[key])
        return TensorDict(entries, batch_size=graph.batch_size)

    return spoil


def drop(key):
    return lambda graph: graph.exclude(key)


def relead(*batch_size):
    """The same tensors under a TensorDict that claims fewer leading dimensions."""
    return lambda graph: TensorDict(dict(graph.items()), batch_size=batch_size)


def elsewhere(key):
    def spoil(graph):
        entries = dict(graph.items())
        entries[key] = entries[key].to("meta")
        return entries

    return spoil


NAN, INF = math.nan, math.inf

GRAPHS = [
    # Values: the message names the graph by its index.
    ("NaN in x", EXPLICIT, put("x", (0, 1, 2, 0), NAN), "graph[0, 1].x", "NaN at node 2, feature 0"),
    ("Inf in x", EXPLICIT, put("x", (1, 2, 0, 1), INF), "graph[1, 2].x", "inf at node 0, feature 1"),
    ("minus Inf in x", EXPLICIT, put("x", (1, 0, 1, 2), -INF), "graph[1, 0].x", "-inf at node 1"),
    ("NaN in pos", EXPLICIT, put("pos", (0, 0, 1, 1), NAN), "graph[0, 0].pos", "node 1, coordinate 1"),
    ("Inf in pos", EXPLICIT, put("pos", (0, 2, 0, 0), INF), "graph[0, 2].pos", "node 0, coordinate 0"),
    ("NaN in edge_attr", EXPLICIT, put("edge_attr", (1, 1, 3, 0), NAN), "graph[1, 1].edge_attr", "edge 3"),
    ("Inf in edge_attr", EXPLICIT, put("edge_attr", (0, 1, 0, 1), INF), "graph[0, 1].edge_attr", "edge 0"),
    (
        "source too high",
        EXPLICIT,
        put("edge_index", (1, 0, 0, 2), 4),
        "graph[1, 0].edge_index",
        "4 as source",
    ),
    (
        "target too high",
        EXPLICIT,
        put("edge_index", (1, 2, 1, 0), 7),
        "graph[1, 2].edge_index",
        "7 as target",
    ),
    (
        "source negative",
        EXPLICIT,
        put("edge_index", (0, 0, 0, 3), -1),
        "graph[0, 0].edge_index",
        "-1 as source",
    ),
    (
        "target negative",
        EXPLICIT,
        put("edge_index", (0, 1, 1, 1), -9),
        "graph[0, 1].edge_index",
        "-9 as target",
    ),
    ("end far away", EXPLICIT, put("edge_index", (1, 1, 0, 0), 2**40), "graph[1, 1].edge_index", "0 .. 3"),
    ("type too high", EXPLICIT, put("node_type", (0, 2, 1), 3), "graph[0, 2].node_type", "3 at node 1"),
    ("type negative", EXPLICIT, put("node_type", (1, 0, 0), -1), "graph[1, 0].node_type", "-1 at node 0"),
    ("topology too high", BANKED, put("topology", (1, 2), 2), "graph[1, 2].topology", "2, but the bank"),
    ("topology negative", BANKED, put("topology", (0, 1), -1), "graph[0, 1].topology", "-1, but the bank"),
    ("NaN in x, topology", BANKED, put("x", (0, 1, 0, 0), NAN), "graph[0, 1].x", "NaN"),
    ("NaN in x, radius", RADIUS, put("x", (1, 1, 0, 0), NAN), "graph[1, 1].x", "NaN"),
    ("NaN in pos, radius", RADIUS, put("pos", (0, 1, 2, 0), NAN), "graph[0, 1].pos", "NaN at node 2"),
    ("Inf in pos, radius", RADIUS, put("pos", (0, 1, 2, 0), -INF), "graph[0, 1].pos", "-inf at node 2"),
    # Types.
    ("whole x", EXPLICIT, cast("x", torch.int64), "graph.x", "torch.int64"),
    ("bool x", EXPLICIT, cast("x", torch.bool), "graph.x", "torch.bool"),
    ("complex x", EXPLICIT, cast("x", torch.complex64), "graph.x", "torch.complex64"),
    ("float node_mask", EXPLICIT, cast("node_mask", torch.float32), "graph.node_mask", "torch.float32"),
    ("whole node_mask", EXPLICIT, cast("node_mask", torch.uint8), "graph.node_mask", "torch.uint8"),
    ("int32 edge_index", EXPLICIT, cast("edge_index", torch.int32), "graph.edge_index", "torch.int32"),
    ("float edge_index", EXPLICIT, cast("edge_index", torch.float32), "graph.edge_index", "torch.float32"),
    ("whole edge_mask", EXPLICIT, cast("edge_mask", torch.int64), "graph.edge_mask", "torch.int64"),
    ("whole edge_attr", EXPLICIT, cast("edge_attr", torch.int64), "graph.edge_attr", "torch.int64"),
    ("whole pos", EXPLICIT, cast("pos", torch.int32), "graph.pos", "torch.int32"),
    ("float node_type", EXPLICIT, cast("node_type", torch.float64), "graph.node_type", "torch.float64"),
    ("float topology", BANKED, cast("topology", torch.float32), "graph.topology", "torch.float32"),
    # Sizes that disagree.
    ("x of fewer nodes", EXPLICIT, resize("x", lambda x: x[:, :, :3]), "graph.x", "[2, 3, 3, 3]"),
    ("x too narrow", EXPLICIT, resize("x", lambda x: x[..., :2]), "graph.x", "[2, 3, 4, 2]"),
    ("x without features", EXPLICIT, resize("x", lambda x: x[..., 0]), "graph.x", "[2, 3, 4]"),
    (
        "mask too long",
        EXPLICIT,
        resize("node_mask", lambda m: torch.cat((m, m), -1)),
        "graph.node_mask",
        "8]",
    ),
    ("mask too short", EXPLICIT, resize("node_mask", lambda m: m[..., :2]), "graph.node_mask", "[2, 3, 2]"),
    ("mask with a column", EXPLICIT, resize("node_mask", lambda m: m[..., None]), "graph.node_mask", "4, 1]"),
    ("fewer edges", EXPLICIT, resize("edge_index", lambda e: e[..., :4]), "graph.edge_index", "[2, 3, 2, 4]"),
    ("three ends", EXPLICIT, resize("edge_index", lambda e: e[:, :, [0, 1, 1]]), "graph.edge_index", "3, 5]"),
    ("edges lying down", EXPLICIT, resize("edge_index", lambda e: e.mT), "graph.edge_index", "5, 2]"),
    (
        "shorter edge_mask",
        EXPLICIT,
        resize("edge_mask", lambda m: m[..., :1]),
        "graph.edge_mask",
        "[2, 3, 1]",
    ),
    (
        "wide edge_attr",
        EXPLICIT,
        resize("edge_attr", lambda a: a[..., [0, 1, 1]]),
        "graph.edge_attr",
        "5, 3]",
    ),
    ("short edge_attr", EXPLICIT, resize("edge_attr", lambda a: a[:, :, :2]), "graph.edge_attr", "2, 2]"),
    ("flat pos", EXPLICIT, resize("pos", lambda p: p[..., :1]), "graph.pos", "[2, 3, 4, 1]"),
    ("short node_type", EXPLICIT, resize("node_type", lambda t: t[..., :3]), "graph.node_type", "[2, 3, 3]"),
    (
        "a topology per node",
        BANKED,
        resize("topology", lambda t: t[..., None]),
        "graph.topology",
        "[2, 3, 1]",
    ),
    ("fewer leading", EXPLICIT, relead(2), "graph.x", "leading dimensions [2]"),
    ("none leading", RADIUS, relead(), "graph.x", "leading dimensions []"),
    # Missing or of the wrong nature.
    ("no x", EXPLICIT, drop("x"), "graph.x", "missing"),
    ("no node_mask", EXPLICIT, drop("node_mask"), "graph.node_mask", "missing"),
    ("no edge_index", EXPLICIT, drop("edge_index"), "graph.edge_index", "missing"),
    ("no edge_mask", EXPLICIT, drop("edge_mask"), "graph.edge_mask", "missing"),
    ("no edge_attr", EXPLICIT, drop("edge_attr"), "graph.edge_attr", "missing"),
    ("no node_type", EXPLICIT, drop("node_type"), "graph.node_type", "missing"),
    ("no pos", RADIUS, drop("pos"), "graph.pos", "missing"),
    ("no topology", BANKED, drop("topology"), "graph.topology", "missing"),
    ("x a list", EXPLICIT, lambda g: dict(g.items()) | {"x": [1, 2]}, "graph.x", "list"),
    ("pos elsewhere", RADIUS, elsewhere("pos"), "graph.pos", "meta"),
    ("not a graph", EXPLICIT, lambda g: g["x"], "graph", "Tensor"),
]


@pytest.mark.parametrize(
    ("spec", "spoil", "field", "what"), [case[1:] for case in GRAPHS], ids=[c[0] for c in GRAPHS]
)
def test_a_bad_graph_is_refused_by_name(spec, spoil, field, what):
    graph = good(spec)
    validate(graph, spec)
    with pytest.raises(ValueError) as caught:
        validate(spoil(graph), spec)
    assert str(caught.value).startswith((field + ":", field + "."))
    assert what in str(caught.value)


def test_there_are_sixty_of_them():
    assert len({case[0] for case in GRAPHS}) == len(GRAPHS) >= 60


SPECS = [
    (lambda: GraphSpec(0, 1), "GraphSpec.num_nodes"),
    (lambda: GraphSpec(-3, 1), "GraphSpec.num_nodes"),
    (lambda: GraphSpec(2.5, 1), "GraphSpec.num_nodes"),
    (lambda: GraphSpec(3, -1), "GraphSpec.node_features"),
    (lambda: GraphSpec(3, 1, position_dim=-1), "GraphSpec.position_dim"),
    (lambda: GraphSpec(3, 1, node_types=-2), "GraphSpec.node_types"),
    (lambda: Explicit(-1), "Explicit.num_edges"),
    (lambda: Explicit(1.5), "Explicit.num_edges"),
    (lambda: Explicit(4, -1), "Explicit.num_features"),
    (lambda: GraphSpec(3, 1, edges=Nearest(2)), "GraphSpec.position_dim"),
]


@pytest.mark.parametrize(("build", "field"), SPECS)
def test_a_bad_size_is_refused_by_name(build, field):
    with pytest.raises(ValueError, match=field):
        build()


PAIR = torch.tensor([[0], [1]])
IMPORTS = [
    (Data(x=torch.zeros(2, 1), edge_index=PAIR + 1), "graph[0].edge_index: from 1 to 2"),
    (Data(x=torch.zeros(2, 1), edge_index=-PAIR), "graph[0].edge_index: from -1 to 0"),
    (Data(x=torch.zeros(2, 1), edge_index=PAIR.float()), "graph[0].edge_index: dtype"),
    (Data(x=torch.full((2, 1), NAN), edge_index=PAIR), "graph[0].x: NaN at node 0"),
    (Data(x=torch.zeros(2, 5), edge_index=PAIR), "graph[0].x: shape is [2, 5]"),
    (Data(edge_index=PAIR, num_nodes=2), "graph[0].x: missing"),
    (Data(x=torch.zeros(9, 1), edge_index=PAIR), "graph[0]: 9 nodes"),
    (Data(x=torch.zeros(2, 1), edge_index=PAIR.repeat(1, 9)), "graph[0]: 9 edges"),
]


@pytest.mark.parametrize(("data", "message"), IMPORTS)
def test_a_bad_import_is_refused_by_name(data, message):
    with pytest.raises(ValueError) as caught:
        from_pyg([data], GraphSpec(4, 1, edges=Explicit(3)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(x=torch.zeros(2, 3)), r"graph\[0\].topology: missing"),
        (Data(x=torch.zeros(2, 3), topology=2), r"graph\[0\].topology: 2, but the bank"),
        (Data(x=torch.zeros(3, 3), topology=0, edge_index=PAIR + 1), r"graph\[0\].edge_index: not the edges"),
    ],
)
def test_a_bad_import_by_topology_is_refused_by_name(data, message):
    with pytest.raises(ValueError, match=message):
        from_pyg([data], BANKED)


def test_an_import_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one graph"):
        spec_for([])


def test_a_networkx_attribute_on_some_nodes_alone_is_refused():
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(3)
    graph.nodes[1]["x"] = 1.0
    with pytest.raises(ValueError, match="'x'"):
        from_networkx(graph)


@given(kind=kinds, lead=leads, seed=seeds)
def test_good_graphs_pass_whatever_their_padding_holds(kind, lead, seed):
    spec = random_spec(kind, seed=seed, node_types=2)
    graph = random_graph(spec, lead, seed=seed)
    validate(graph, spec)
    validate(dict(graph.items()), spec)
    graph["note"] = torch.full((*lead, 1), NAN)
    validate(graph, spec)


def test_the_name_of_a_graph_without_leading_dimensions():
    graph = put("x", (0, 0), NAN)(good(RADIUS, ()))
    with pytest.raises(ValueError, match=r"^board\.x: NaN at node 0, feature 0$"):
        validate(graph, RADIUS, name="board")
