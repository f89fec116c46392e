"""The bridge: there and back, both ways equal, and nothing leaks."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict
from tests.graphs.random_graphs import (
    Attention,
    kinds,
    leads,
    random_graph,
    random_spec,
    seeds,
    sizes,
    spoil,
)
from torch_geometric.nn import GINEConv, GraphNorm

from edgewise.graphs.edges import Edges, Explicit, prefers_compact
from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology
from edgewise.models.bridge import pool_nodes, union

CLOSE = {"rtol": 0, "atol": 1e-6}


def edge_triples(graph, spec):
    """Every edge of every graph by plain loops: (graph, source, target, features)."""
    edges = spec.edges_of(graph)
    worlds = list(itertools.product(*(range(size) for size in graph.batch_size)))
    for number, world in enumerate(worlds):
        for slot in range(edges.mask.shape[-1]):
            if edges.mask[world][slot]:
                source, target = edges.index[world][:, slot].tolist()
                attr = () if edges.attr is None else tuple(edges.attr[world][slot].tolist())
                yield number, source, target, attr


def union_triples(flat, num_nodes):
    """Every edge of a union, its ends told as slots of their graph; sink edges left out."""
    slots = flat.node_mask.numel()
    place = torch.arange(slots) if flat.kept is None else flat.kept
    for edge in range(flat.edge_index.shape[1]):
        source, target = flat.edge_index[:, edge].tolist()
        if flat.kept is None and (source == slots or target == slots):
            assert source == target
            assert flat.edge_attr is None or not flat.edge_attr[edge].any()
            continue
        attr = () if flat.edge_attr is None else tuple(flat.edge_attr[edge].tolist())
        graph, target_graph = int(place[source]) // num_nodes, int(place[target]) // num_nodes
        assert graph == target_graph
        yield graph, int(place[source]) % num_nodes, int(place[target]) % num_nodes, attr


@given(kind=kinds, lead=leads, num_nodes=sizes, seed=seeds, compact=st.booleans())
def test_nodes_and_edges_survive_the_way_there_and_back(kind, lead, num_nodes, seed, compact):
    spec = random_spec(kind, num_nodes, seed=seed, node_types=2)
    graph = random_graph(spec, lead, seed=seed)
    flat = union(graph, spec, compact=compact)
    exists = graph["node_mask"].unsqueeze(-1)
    for key, values in (("x", flat.x), ("pos", flat.pos)):
        assert torch.equal(flat.nodes(values), graph[key].masked_fill(~exists, 0.0))
    kind_of = flat.nodes(flat.node_type.double().unsqueeze(-1)).squeeze(-1)
    assert torch.equal(kind_of, graph["node_type"].masked_fill(~graph["node_mask"], 0).double())
    assert sorted(union_triples(flat, num_nodes)) == sorted(edge_triples(graph, spec))


@given(kind=kinds, lead=leads, num_nodes=sizes, seed=seeds, keep=st.sampled_from([0.0, 0.5, 1.0]))
def test_static_and_compact_are_equal_forward_and_backward(kind, lead, num_nodes, seed, keep):
    spec = random_spec(kind, num_nodes, seed=seed)
    graph = random_graph(spec, lead, seed=seed, keep=keep)
    model = Attention(spec)
    found = []
    for compact in (False, True):
        model.zero_grad()
        nodes, pooled = model(graph, compact)
        (nodes.square().sum() + pooled.sin().sum()).backward()
        gradients = [
            torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
            for weight in model.parameters()
        ]
        found.append([nodes, pooled, *gradients])
    for static, compacted in zip(*found, strict=True):
        assert static.isfinite().all()
        torch.testing.assert_close(static, compacted, **CLOSE)
    assert nodes.shape == (*lead, num_nodes, 3)
    assert pooled.shape == (*lead, 3)


@given(kind=kinds, lead=st.sampled_from([(3,), (2, 3), (2, 1, 2)]), seed=seeds, compact=st.booleans())
def test_batch_mates_change_nothing(kind, lead, seed, compact):
    spec = random_spec(kind, seed=seed)
    graph, model = random_graph(spec, lead, seed=seed), Attention(spec)
    nodes, pooled = model(graph, compact)
    for world in itertools.product(*(range(size) for size in lead)):
        alone_nodes, alone_pooled = model(graph[world], compact)
        torch.testing.assert_close(nodes[world], alone_nodes, **CLOSE)
        torch.testing.assert_close(pooled[world], alone_pooled, **CLOSE)


@given(
    kind=st.sampled_from(["explicit", "bare", "radius", "nearest", "nearest slots"]), seed=seeds, more=sizes
)
def test_more_padding_changes_nothing(kind, seed, more):
    spec = random_spec(kind, seed=seed)
    graph, model = random_graph(spec, (2,), seed=seed), Attention(spec)
    wide_spec = GraphSpec(6 + more, 3, edges=spec.edges, position_dim=2)
    wide = wide_spec.zeros(2)
    if isinstance(spec.edges, Explicit):
        wide_spec = GraphSpec(6 + more, 3, edges=Explicit(12, spec.edge_features), position_dim=2)
        wide = wide_spec.zeros(2)
        count = spec.edges.num_edges
        for key in ("edge_mask", "edge_index"):
            wide[key][..., :count] = graph[key]
        if spec.edge_features:
            wide["edge_attr"] = wide["edge_attr"].double()
            wide["edge_attr"][:, :count] = graph["edge_attr"]
    wide["node_mask"][:, :6] = graph["node_mask"]
    for key in ("x", "pos"):
        wide[key] = wide[key].double()
        wide[key][:, :6] = graph[key]
    spoil(wide)
    for compact in (False, True):
        model.spec = spec
        nodes, pooled = model(graph, compact)
        model.spec = wide_spec
        wide_nodes, wide_pooled = model(wide, compact)
        torch.testing.assert_close(wide_nodes[:, :6], nodes, **CLOSE)
        torch.testing.assert_close(wide_pooled, pooled, **CLOSE)
        assert not wide_nodes[:, 6:].any()


@given(kind=st.sampled_from(["explicit", "radius", "nearest", "nearest slots"]), seed=seeds)
def test_permuted_nodes_give_permuted_nodes(kind, seed):
    spec = random_spec(kind, seed=seed)
    graph, model = random_graph(spec, (2,), seed=seed), Attention(spec)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
    moved = graph.clone()
    for key in ("x", "pos", "node_mask"):
        moved[key] = graph[key][:, order]
    if kind == "explicit":
        place = order.argsort()
        index = graph["edge_index"]
        moved["edge_index"] = torch.where(graph["edge_mask"].unsqueeze(-2), place[index.clamp(0, 5)], index)
    for compact in (False, True):
        nodes, pooled = model(graph, compact)
        moved_nodes, moved_pooled = model(moved, compact)
        torch.testing.assert_close(moved_nodes, nodes[:, order], **CLOSE)
        torch.testing.assert_close(moved_pooled, pooled, **CLOSE)


@pytest.mark.parametrize("lead", [(), (6,), (2, 3), (3, 2), (1, 6), (3, 1, 2)])
@pytest.mark.parametrize("compact", [False, True])
def test_every_leading_shape_is_the_same_union(lead, compact):
    spec = random_spec("explicit")
    flat_graph = random_graph(spec, (6,), seed=1)
    graph = flat_graph.reshape(*lead) if lead else flat_graph[0]
    expected = union(flat_graph if lead else flat_graph[:1], spec, compact=compact)
    found = union(graph, spec, compact=compact)
    for name in ("x", "edge_index", "edge_attr", "pos", "batch"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    assert found.num_graphs == expected.num_graphs
    assert found.nodes(found.x).shape == (*lead, 6, 3)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("features", [0, 2])
def test_graphs_without_edge_slots(compact, features):
    spec = GraphSpec(3, 3, edges=Explicit(0, features))
    graph = random_graph(spec, (4,), keep=0.6)
    nodes, pooled = Attention(spec)(graph, compact)
    assert nodes.isfinite().all()
    assert pooled.shape == (4, 3)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("kind", ["explicit", "radius", "nearest", "nearest slots", "topology"])
def test_one_node_and_no_nodes(kind, compact):
    for num_nodes, keep in ((1, 1.0), (1, 0.0), (4, 0.0)):
        spec = random_spec(kind, num_nodes)
        nodes, pooled = Attention(spec)(random_graph(spec, (2,), keep=keep), compact)
        assert nodes.shape == (2, num_nodes, 3)
        assert pooled.isfinite().all()
        if keep == 0.0:
            assert not nodes.any()
            assert not pooled.any()


@pytest.mark.parametrize("compact", [False, True])
def test_nodes_without_features(compact):
    spec = GraphSpec(4, 0, edges=Explicit(3))
    flat = union(random_graph(spec, (2, 3)), spec, compact=compact)
    assert flat.x.shape[1] == 0
    assert flat.nodes(flat.x).shape == (2, 3, 4, 0)


@given(seed=seeds, compact=st.booleans())
def test_norms_over_batch_never_see_padding(seed, compact):
    spec = random_spec("explicit", seed=seed)
    graph, norm = random_graph(spec, (3,), seed=seed), GraphNorm(3).double()
    flat = union(graph, spec, compact=compact)
    normed = flat.nodes(norm(flat.x, flat.batch, batch_size=flat.batch_size))
    for number in range(3):
        exists = graph["node_mask"][number]
        torch.testing.assert_close(normed[number, exists], norm(graph["x"][number, exists]))


@given(lead=leads, seed=seeds, compact=st.booleans())
def test_pools_equal_a_loop_over_graphs(lead, seed, compact):
    spec = random_spec("bare", seed=seed)
    graph = random_graph(spec, lead, seed=seed, keep=0.4)
    flat = union(graph, spec, compact=compact)
    for how, pool in (("mean", torch.mean), ("sum", torch.sum), ("max", torch.amax)):
        found = flat.pool(flat.x, how)
        assert found.shape == (*lead, 3)
        for world in itertools.product(*(range(size) for size in lead)):
            rows = graph["x"][world][graph["node_mask"][world]]
            expected = pool(rows, 0) if len(rows) else torch.zeros(3).double()
            torch.testing.assert_close(found[world], expected)


def test_pool_of_nothing_has_no_gradient_and_no_nan():
    h = torch.randn(2, 3, 4, requires_grad=True)
    mask = torch.tensor([[False] * 3, [True, False, True]])
    for how in ("mean", "sum", "max"):
        (gradient,) = torch.autograd.grad(pool_nodes(h, mask, how=how).sum(), h)
        assert gradient.isfinite().all()
        assert not gradient[0].any()


def test_pool_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="median"):
        pool_nodes(torch.zeros(1, 2), torch.ones(1, dtype=torch.bool), how="median")


def test_edges_touching_absent_nodes_are_absent():
    spec = GraphSpec(3, 1, edges=Explicit(2))
    graph = spec.zeros()
    graph["node_mask"] = torch.tensor([True, True, False])
    graph["edge_index"] = torch.tensor([[0, 0], [1, 2]])
    graph["edge_mask"][:] = True
    assert spec.edges_of(graph).mask.tolist() == [True, False]
    assert union(graph, spec, compact=True).edge_index.tolist() == [[0], [1]]


@given(kind=kinds, seed=seeds)
def test_a_plain_dict_is_a_graph_too(kind, seed):
    spec = random_spec(kind, seed=seed)
    graph = random_graph(spec, (2, 2), seed=seed)
    for compact in (False, True):
        one, other = union(graph, spec, compact=compact), union(dict(graph.items()), spec, compact=compact)
        assert torch.equal(one.edge_index, other.edge_index)


def test_shapes_stay_static_where_a_count_would_have_to_be_waited_for():
    def edges(device):
        return Edges(torch.zeros(2, 4, device=device), torch.zeros(4, dtype=torch.bool, device=device))

    assert prefers_compact(edges("cpu"))
    assert not prefers_compact(edges("meta"))
    seen = []
    torch.vmap(lambda mask: seen.append(prefers_compact(Edges(mask, mask))) or mask)(torch.ones(2, 3))
    assert seen == [False]


def test_other_convolutions_agree_between_both_ways():
    spec = random_spec("explicit")
    graph = random_graph(spec, (5,), seed=3)
    conv = GINEConv(torch.nn.Linear(3, 2), edge_dim=2).double()
    found = []
    for compact in (False, True):
        flat = union(graph, spec, compact=compact)
        found.append(flat.nodes(conv(flat.x, flat.edge_index, flat.edge_attr)))
    torch.testing.assert_close(*found)


def test_a_planted_leak_is_caught():
    """The sink matters: sending absent edges to node zero instead changes a real node."""
    spec = GraphSpec(2, 3, edges=Explicit(2))
    graph = TensorDict(
        x=torch.randn(1, 2, 3),
        node_mask=torch.ones(1, 2, dtype=torch.bool),
        edge_index=torch.tensor([[[0, 0], [1, 0]]]),
        edge_mask=torch.tensor([[True, False]]),
        batch_size=[1],
    )
    flat = union(graph, spec, compact=False)
    leaky = torch.where(flat.edge_index == 2, 0, flat.edge_index)
    conv = Attention(spec).float().first
    assert torch.equal(flat.nodes(conv(flat.x, flat.edge_index))[0, 0], conv.bias)
    assert not torch.allclose(flat.nodes(conv(flat.x, leaky))[0, 0], conv.bias)


def test_specs_of_every_source_build_a_union_of_the_declared_width():
    for kind in ("explicit", "bare", "radius", "nearest", "nearest slots", "topology"):
        spec = random_spec(kind)
        attr = union(random_graph(spec, (2,)), spec, compact=False).edge_attr
        assert (0 if attr is None else attr.shape[-1]) == spec.edge_features
    assert isinstance(random_spec("topology").edges, Topology)
    assert isinstance(random_spec("radius").edges, Radius)
