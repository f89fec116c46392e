"""The static way under torch.compile, torch.export, torch.vmap and on a device that is not there."""

import pytest
import torch
from tests.graphs.random_graphs import Attention, random_graph, random_spec
from torch._dynamo.testing import CompileCounter

from edgewise.graphs.dense import dense_edges, parallel_edges
from edgewise.graphs.edges import Explicit
from edgewise.graphs.proximity import Nearest, Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.models.bridge import union

KINDS = ["explicit", "radius", "nearest", "nearest slots", "topology"]
EXPORTED = [pytest.param(kind, marks=pytest.mark.thorough) for kind in ("explicit", "nearest")]
EXPORTED += ["radius", "nearest slots", "topology"]


def plain(graph):
    return dict(graph.items())


@pytest.fixture
def _fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.usefixtures("_fresh_compiler")
@pytest.mark.parametrize("kind", ["explicit", "radius"])
def test_one_compiled_graph_serves_all_batch_sizes(kind):
    spec = random_spec(kind)
    model, counter = Attention(spec), CompileCounter()
    compiled = torch.compile(model, dynamic=True, fullgraph=True, backend=counter)
    for lead in ((4, 5), (7, 10), (16, 9)):
        graph = random_graph(spec, lead)
        for found, expected in zip(compiled(plain(graph)), model(graph, compact=False), strict=True):
            torch.testing.assert_close(found, expected)
    assert counter.frame_count == 1


@pytest.mark.parametrize("kind", EXPORTED)
def test_an_exported_program_serves_all_batch_sizes(kind):
    spec = random_spec(kind)
    model = Attention(spec)
    graph = random_graph(spec, (5, 2))
    worlds = torch.export.Dim("worlds")
    shapes = ({key: {0: worlds} for key in plain(graph)},)
    program = torch.export.export(model, (plain(graph),), dynamic_shapes=shapes).module()
    other = random_graph(spec, (9, 2), seed=1)
    for found, expected in zip(program(plain(other)), model(other, compact=False), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_vmap_over_worlds_is_the_batch(kind):
    spec = random_spec(kind)
    model, graph = Attention(spec), random_graph(spec, (3, 2))
    for found, expected in zip(torch.vmap(model)(graph), model(graph), strict=True):
        torch.testing.assert_close(found, expected)


def test_vmap_of_gradients_finds_each_worlds_own():
    spec = random_spec("radius")
    model, graph = Attention(spec), random_graph(spec, (3,), junk=False)
    rest = graph.exclude("pos")

    def value(position, rest):
        return model({**plain(rest), "pos": position})[1].square().sum()

    found = torch.vmap(torch.func.grad(value))(graph["pos"], rest)
    for world in range(3):
        torch.testing.assert_close(found[world], torch.func.grad(value)(graph["pos"][world], rest[world]))


def sources():
    bank = TopologyBank.from_edge_lists([[(0, 1), (1, 2)], [(2, 0)]], [torch.ones(2, 1), torch.ones(1, 1)])
    return [
        Explicit(5, 2),
        Radius(1.0, receivers=(0,)),
        Nearest(2),
        Nearest(2, pairs=False),
        Topology(bank),
    ]


def test_nothing_waits_or_strays_on_an_absent_device(fake_device):
    for source in sources():
        spec = GraphSpec(4, 3, edges=source, position_dim=2, node_types=2)
        graph = spec.zeros(2, 3, device=fake_device)
        model = Attention(spec).float().to(fake_device)
        nodes, pooled = model(graph)
        assert nodes.device == pooled.device == fake_device
        (nodes.sum() + pooled.sum()).backward()
        assert all(weight.grad.device == fake_device for weight in model.parameters())
        edges = spec.edges_of(graph)
        assert dense_edges(edges, 4).mask.device == fake_device
        assert parallel_edges(edges, 4).device == fake_device
        flat = union(graph, spec)
        assert flat.kept is None
        assert flat.pool(flat.x, "max").device == fake_device


def test_a_bank_follows_the_graph_to_an_absent_device_and_keeps_nothing_of_it(fake_device):
    spec = GraphSpec(4, 3, edges=sources()[-1])
    assert spec.edges_of(spec.zeros(2, device=fake_device)).index.device == fake_device
    assert not spec.edges.bank._copies
