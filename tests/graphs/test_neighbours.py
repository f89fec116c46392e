"""Spatial indices against all pairs: equal edges and equal features, bit for bit, in every kind of cloud."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from edgewise.graphs import cells, kd_tree, neighbours
from edgewise.graphs import proximity as rules
from edgewise.graphs.pair_features import Displacement, Distance, PairFunction
from edgewise.graphs.proximity import Nearest, Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.models.bridge import union

SHAPES = ("even", "lattice", "clusters", "line", "one point", "outlier", "tiny", "huge")


def pick(options, generator):
    return options[int(torch.randint(len(options), (), generator=generator))]


def scatter(shape, size, *, dtype, generator):
    """Positions of a kind that a spatial index may get wrong."""
    normal = torch.randn(*size, generator=generator, dtype=dtype)
    whole = torch.randint(0, 5, size, generator=generator).to(dtype)
    if shape == "lattice":
        return whole * pick((0.25, 1.0, 0.1), generator)
    if shape == "clusters":
        return whole * 100 + 0.01 * normal
    if shape == "line":
        return torch.cat((normal[..., :1], torch.zeros_like(normal[..., 1:])), -1)
    if shape == "one point":
        return torch.full_like(normal, 0.3)
    if shape == "outlier":
        return torch.where(torch.rand(size[:-1], generator=generator).unsqueeze(-1) < 0.05, 1e6, 0.1) * normal
    if shape in ("tiny", "huge"):
        return normal * {"tiny": 1e-12, "huge": 1e12}[shape]
    return normal


def cloud(seed):
    """A batch of clouds with ties, duplicates, absent nodes and junk, and a rule's numbers that touch it."""
    generator = torch.Generator().manual_seed(seed)
    worlds, nodes, dims = (
        pick(choices, generator) for choices in ((1, 1, 3), (1, 2, 5, 17, 60), (1, 2, 2, 3, 5))
    )
    dtype = pick((torch.float32, torch.float64), generator)
    position = scatter(pick(SHAPES, generator), (worlds, nodes, dims), dtype=dtype, generator=generator)
    copied = torch.randint(nodes, (worlds, nodes, 1), generator=generator).expand_as(position)
    is_copy = torch.rand(worlds, nodes, 1, generator=generator) < pick((0.0, 0.3), generator)
    position = torch.where(is_copy, position.gather(1, copied), position)
    mask = torch.rand(worlds, nodes, generator=generator) < pick((0.5, 1.0, 1.0), generator)
    distances = torch.cdist(position[:1], position[:1], compute_mode="donot_use_mm_for_euclid_dist").flatten()
    radius = float(pick(distances.tolist(), generator)) * pick((1.0, 1.0, 0.5, 2.0), generator)
    types = [pick((None, None, (0,), (1, 2)), generator) for _ in range(2)]
    graph = GraphSpec(nodes, 1, Radius(1.0), position_dim=dims, node_types=3).zeros(worlds)
    graph["pos"] = position.masked_fill(~mask.unsqueeze(-1), torch.nan)
    graph["node_mask"] = mask
    graph["node_type"] = torch.randint(3, mask.shape, generator=generator)
    graph["x"] = torch.randn(worlds, nodes, 1, generator=generator)
    k = pick((1, 2, 3, 8), generator)
    return graph, {"senders": types[0], "receivers": types[1]}, radius or 1.0, k


def relative(graph, pairs):
    return pairs.source(graph["x"]) - pairs.target(graph["x"])


FEATURES = (Displacement(), Distance(), PairFunction(relative, 1))


def flat_edges(graph, rule):
    """Edges and features of the union without padding, as convolutions get them."""
    spec = GraphSpec(graph["pos"].shape[1], 1, rule, position_dim=graph["pos"].shape[2], node_types=3)
    found = union(graph, spec, compact=True)
    return found.edge_index, found.edge_attr


def check_radius(seed):
    graph, types, radius, _ = cloud(seed)
    expected = flat_edges(graph, Radius(radius, FEATURES, search="pairs", **types))
    for search in ("cells", "kd_tree"):
        index, attr = flat_edges(graph, Radius(radius, FEATURES, search=search, **types))
        assert torch.equal(index, expected[0]), (search, seed)
        assert torch.equal(attr, expected[1]), (search, seed)


def check_nearest(seed):
    graph, types, _, k = cloud(seed)
    expected = Nearest(k, FEATURES, search="pairs", pairs=False, **types)(graph)
    for search in ("cells", "kd_tree", "blocks"):
        rule = Nearest(k, FEATURES, search="pairs" if search == "blocks" else search, **types)
        if search == "blocks" and graph["pos"].shape[1] == 1:
            continue
        found = rule._searched(graph, search) if search == "blocks" else rule(graph)
        if found.complete:
            continue
        assert torch.equal(found.mask, expected.mask), (search, seed)
        both = found.mask.unsqueeze(-2)
        assert torch.equal(found.index * both, expected.index * both), (search, seed)
        both = found.mask.unsqueeze(-1)
        assert torch.equal(found.attr * both, expected.attr * both), (search, seed)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that every loop runs more than once in small clouds."""
    for module in (neighbours, cells, kd_tree):
        monkeypatch.setattr(module, "BLOCK", 64)


def test_indices_find_what_all_pairs_find(small_blocks):
    for seed in range(80):
        check_radius(seed)
        check_nearest(seed)


@pytest.mark.learning
def test_indices_find_what_all_pairs_find_in_a_thousand_clouds(small_blocks):
    for seed in range(1000, 2000):
        check_radius(seed)
        check_nearest(seed)


def wide_cloud(seed, *, nodes=700):
    """A cloud that fills many cells, half of it on a lattice, with gaps and duplicates."""
    generator = torch.Generator().manual_seed(seed)
    even = torch.rand(1, nodes, 2, generator=generator) * 20
    is_even = torch.rand(1, nodes, 1, generator=generator) < 0.5
    graph = GraphSpec(nodes, 1, Radius(1.0), position_dim=2, node_types=3).zeros(1)
    graph["pos"] = torch.where(is_even, even, even.round())
    graph["node_mask"][:] = True
    return graph


def test_nearest_by_an_index_in_clouds_of_many_cells(small_blocks):
    for seed, k in enumerate((1, 3, 6)):
        graph = wide_cloud(seed)
        expected = Nearest(k, (), search="pairs", pairs=False)(graph)
        for search in ("cells", "kd_tree"):
            found = Nearest(k, (), search=search)(graph)
            assert torch.equal(found.index, expected.index), (search, k)


def test_an_index_is_chosen_by_the_number_of_nodes():
    few, many = torch.zeros(1, rules.ALL_PAIRS, 2), torch.zeros(1, rules.ALL_PAIRS + 1, 2)
    for rule in (Radius(0.1), Nearest(3)):
        assert rule.chosen_search(few) == "pairs"
        assert rule.chosen_search(many) == "kd_tree"
    assert Radius(torch.inf).chosen_search(many) == "pairs"
    assert Radius(0.1, max_edges=9).chosen_search(few) == "kd_tree"


@pytest.mark.parametrize("rule", [Radius(0.05), Nearest(4)], ids=["radius", "nearest"])
def test_large_graphs_have_slots_for_their_edges_only(rule):
    spec = GraphSpec(3000, 1, rule, position_dim=2)
    graph = spec.zeros(2)
    graph["pos"] = torch.rand(2, 3000, 2, generator=torch.Generator().manual_seed(0))
    graph["node_mask"][:] = True
    edges = spec.edges_of(graph)
    assert not edges.complete
    assert edges.mask.shape[-1] < 3000 * 40
    assert edges.mask.float().mean() > 0.9


def test_declared_slots_hold_the_same_edges_in_the_same_order(small_blocks):
    for seed in range(200, 220):
        graph, types, radius, _ = cloud(seed)
        expected = flat_edges(graph, Radius(radius, FEATURES, search="pairs", **types))
        slots = graph["pos"].shape[1] ** 2
        for search in ("cells", "kd_tree"):
            rule = Radius(radius, FEATURES, search=search, max_edges=slots, **types)
            edges = rule(graph)
            assert edges.mask.shape[-1] == slots
            assert not edges.overflow
            for one, other in zip(flat_edges(graph, rule), expected, strict=True):
                assert torch.equal(one, other), (search, seed)


@pytest.mark.parametrize("search", ["cells", "kd_tree"])
def test_more_edges_than_slots_are_reported(search):
    graph = GraphSpec(6, 1, Radius(1.0), position_dim=1).zeros(2)
    graph["pos"] = torch.tensor(
        [[0.0, 0.1, 0.2, 9.0, 19.0, 29.0], [0.0, 9.0, 19.0, 29.0, 39.0, 49.0]]
    ).unsqueeze(-1)
    graph["node_mask"][:] = True
    enough = Radius(1.0, search=search, max_edges=6)(graph)
    assert not enough.overflow
    assert enough.mask.sum(-1).tolist() == [6, 0]
    assert Radius(1.0, search=search, max_edges=5)(graph).overflow


def test_candidates_that_do_not_fit_are_reported():
    """Nodes that differ in their last coordinate alone share a cell, and are compared though none is near."""
    graph = GraphSpec(100, 1, Radius(1.0), position_dim=5).zeros(1)
    graph["pos"][0, :, 4] = 10.0 * torch.arange(100)
    graph["node_mask"][:] = True
    assert Radius(1.0, search="cells", max_edges=1)(graph).overflow
    assert not Radius(1.0, search="cells", max_edges=1000)(graph).overflow


def test_declared_slots_need_no_values_of_tensors():
    """Fake tensors have no values: whatever waits for a device raises an error on them."""
    with FakeTensorMode():
        graph = GraphSpec(500, 1, Radius(0.1), position_dim=2).zeros(2)
        edges = Radius(0.1, max_edges=4000)(graph)
        assert edges.index.shape == (2, 2, 4000)
        assert edges.attr.shape == (2, 4000, 3)
        found = neighbours.nearest_in_blocks(Nearest(3).cloud(graph), 3)
        assert found.source.shape == (1000, 3)


@pytest.mark.parametrize("search", ["cells", "kd_tree"])
def test_features_have_the_gradient_of_all_pairs(search):
    graph, _, radius, _ = cloud(9)
    gradients = []
    for each in ("pairs", search):
        position = graph["pos"].clone().requires_grad_()
        _, attr = flat_edges(graph.clone().set("pos", position), Radius(radius, FEATURES, search=each))
        gradients.append(torch.autograd.grad(attr.square().sum(), position)[0])
    torch.testing.assert_close(*gradients)


def test_a_pair_function_for_matrices_is_refused_with_a_remedy():
    def matrices(graph, pairs):
        return graph["x"].unsqueeze(-2) - graph["x"].unsqueeze(-3)

    graph, _, radius, _ = cloud(9)
    with pytest.raises(ValueError, match=r"pairs\.source"):
        Radius(radius, (PairFunction(matrices, 1),), search="cells")(graph)


def test_nodes_at_infinity_have_no_neighbours():
    graph = GraphSpec(5, 1, Radius(1.0), position_dim=2).zeros(1)
    graph["node_mask"][:] = True
    graph["pos"][0, 1], graph["pos"][0, 2] = torch.nan, torch.inf
    for search in ("cells", "kd_tree"):
        edges = Radius(1.0, search=search)(graph)
        assert sorted(edges.index[0].T[edges.mask[0]].flatten().unique().tolist()) == [0, 3, 4]
