"""Edges by rule against loops over all pairs, at the borders of the rule, and with gradients."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.graphs.random_graphs import random_graph, seeds, sizes

from edgewise.graphs.pair_features import Displacement, Distance, PairFunction
from edgewise.graphs.proximity import Nearest, Radius
from edgewise.graphs.spec import GraphSpec

types = st.sampled_from([None, (0,), (1,), (0, 1), (2, 0)])


def line(*positions, rule, node_type=None):
    """Nodes on a line, all existing."""
    spec = GraphSpec(len(positions), 1, edges=rule, position_dim=1, node_types=3 if node_type else 0)
    graph = spec.zeros()
    graph["pos"] = torch.tensor(positions, dtype=torch.float64).unsqueeze(-1)
    graph["node_mask"][:] = True
    if node_type:
        graph["node_type"] = torch.tensor(node_type)
    return graph, spec


def pairs_found(edges):
    return sorted(map(tuple, edges.index.T[edges.mask].tolist()))


def pairs_by_loop(graph, rule):
    """The edges of one graph as the rule is told in words, one pair after another."""
    exists, kind = graph["node_mask"].tolist(), graph["node_type"].tolist()
    position = graph["pos"].tolist()
    nodes = [node for node, there in enumerate(exists) if there]

    def distance(one, other):
        return math.dist(position[one], position[other])

    found = []
    for target in nodes:
        if rule.receivers is not None and kind[target] not in rule.receivers:
            continue
        heard = [source for source in nodes if source != target]
        heard = [source for source in heard if rule.senders is None or kind[source] in rule.senders]
        if isinstance(rule, Radius):
            heard = [source for source in heard if distance(source, target) < rule.radius]
        else:
            heard = sorted(heard, key=lambda source: (distance(source, target), source))[: rule.k]
        found += [(source, target) for source in heard]
    return sorted(found)


@given(
    seed=seeds,
    num_nodes=sizes,
    lead=st.sampled_from([(), (3,), (2, 2), (2, 1, 2)]),
    senders=types,
    receivers=types,
    which=st.sampled_from(["radius", "all pairs", "slots"]),
)
def test_edges_equal_a_loop_over_pairs(seed, num_nodes, lead, senders, receivers, which):
    rule = {
        "radius": lambda: Radius(1.2, senders=senders, receivers=receivers),
        "all pairs": lambda: Nearest(2, senders=senders, receivers=receivers),
        "slots": lambda: Nearest(2, senders=senders, receivers=receivers, pairs=False),
    }[which]()
    spec = GraphSpec(num_nodes, 1, edges=rule, position_dim=2, node_types=3)
    graph = random_graph(spec, lead, seed=seed)
    edges = spec.edges_of(graph)
    worlds = math.prod(lead)
    flat = graph.reshape(worlds)
    index = edges.index.reshape(worlds, 2, edges.index.shape[-1])
    mask = edges.mask.reshape(worlds, edges.mask.shape[-1])
    attr = edges.attr.reshape(worlds, edges.attr.shape[-2], 3)
    for world in range(worlds):
        found = sorted(map(tuple, index[world].T[mask[world]].tolist()))
        assert found == pairs_by_loop(flat[world], rule)
        position = flat["pos"][world]
        for slot in mask[world].nonzero().flatten():
            source, target = index[world, :, slot]
            expected = position[source] - position[target]
            torch.testing.assert_close(attr[world, slot, :2], expected)
            torch.testing.assert_close(attr[world, slot, 2], expected.norm())


@given(seed=seeds, num_nodes=sizes)
def test_slots_of_all_pairs_are_in_the_promised_order(seed, num_nodes):
    for rule in (Radius(1.0), Nearest(2)):
        spec = GraphSpec(num_nodes, 1, edges=rule, position_dim=2)
        edges = spec.edges_of(random_graph(spec, (2,), seed=seed))
        assert edges.complete
        expected = [[source, target] for source in range(num_nodes) for target in range(num_nodes)]
        assert edges.index[0].T.tolist() == expected


def test_the_border_of_the_radius_is_outside():
    graph, spec = line(0.0, 1.0, 1.75, rule=Radius(1.0))
    assert pairs_found(spec.edges_of(graph)) == [(1, 2), (2, 1)]
    graph, spec = line(0.0, 1.0, rule=Radius(math.nextafter(1.0, 2.0)))
    assert pairs_found(spec.edges_of(graph)) == [(0, 1), (1, 0)]


def test_coincident_nodes_are_neighbours_without_nan():
    for rule in (Radius(0.5), Nearest(1), Nearest(1, pairs=False)):
        graph, spec = line(2.0, 2.0, 9.0, rule=rule)
        graph["pos"].requires_grad_()
        edges = spec.edges_of(graph)
        assert {(0, 1), (1, 0)} <= set(pairs_found(edges))
        assert edges.attr.isfinite().all()
        together = edges.mask & (edges.index.sum(-2) == 1)
        assert not edges.attr[together].any()
        (gradient,) = torch.autograd.grad(edges.attr[edges.mask].square().sum(), graph["pos"])
        assert gradient.isfinite().all()


def test_gradient_of_the_distance_is_the_unit_vector():
    graph, spec = line(0.0, 0.5, rule=Radius(1.0, (Distance(),)))
    graph["pos"].requires_grad_()
    edges = spec.edges_of(graph)
    (gradient,) = torch.autograd.grad(edges.attr[edges.mask].sum(), graph["pos"])
    assert gradient.flatten().tolist() == [-2.0, 2.0]


def test_junk_in_absent_nodes_reaches_neither_values_nor_gradients():
    spec = GraphSpec(3, 1, edges=Radius(10.0), position_dim=2)
    graph = spec.zeros()
    graph["node_mask"] = torch.tensor([True, True, False])
    position = torch.tensor([[0.0, 0.0], [1.0, 0.0], [torch.nan, torch.inf]], requires_grad=True)
    graph["pos"] = position
    edges = spec.edges_of(graph)
    (gradient,) = torch.autograd.grad(edges.attr[edges.mask].square().sum(), position)
    assert gradient.isfinite().all()
    assert not gradient[2].any()


@pytest.mark.parametrize("rule", [Radius(1.0), Nearest(59), Nearest(59, pairs=False)])
def test_a_crowd_of_sixty_hears_everybody(rule):
    spec = GraphSpec(60, 1, edges=rule, position_dim=2)
    graph = spec.zeros(2)
    graph["pos"] = torch.rand(2, 60, 2) * 0.1
    graph["node_mask"][:] = True
    edges = spec.edges_of(graph)
    heard = torch.zeros(2, 60, dtype=torch.int64).scatter_add(1, edges.index[:, 1], edges.mask.long())
    assert (heard == 59).all()


def test_agents_hear_all_and_others_hear_nobody():
    agent, goal, obstacle = 0, 1, 2
    rule = Radius(5.0, receivers=(agent,))
    graph, spec = line(0.0, 1.0, 2.0, 3.0, rule=rule, node_type=[agent, agent, goal, obstacle])
    assert pairs_found(spec.edges_of(graph)) == [(0, 1), (1, 0), (2, 0), (2, 1), (3, 0), (3, 1)]


def test_senders_restrict_the_candidates_of_nearest():
    graph, spec = line(0.0, 0.1, 5.0, rule=Nearest(1, senders=(1,)), node_type=[0, 0, 1])
    assert pairs_found(spec.edges_of(graph)) == [(2, 0), (2, 1)]


def test_ties_go_to_the_first_slot():
    graph, spec = line(-1.0, 0.0, 1.0, rule=Nearest(1))
    assert (0, 1) in pairs_found(spec.edges_of(graph))
    assert (2, 1) not in pairs_found(spec.edges_of(graph))


def test_huge_positions_keep_their_neighbours():
    graph, spec = line(0.0, 1e200, rule=Nearest(1))
    assert pairs_found(spec.edges_of(graph)) == [(0, 1), (1, 0)]


def test_an_infinite_radius_links_everybody():
    graph, spec = line(0.0, 1e30, 2e30, rule=Radius(math.inf))
    assert len(pairs_found(spec.edges_of(graph))) == 6


@pytest.mark.parametrize(
    ("features", "width"),
    [
        ((Displacement(), Distance()), 4),
        ((Distance(),), 1),
        ((Displacement(),), 3),
        ((), 0),
        ((Distance(), PairFunction(lambda graph, pairs: pairs.displacement.square(), 3)), 4),
    ],
)
def test_width_of_the_features(features, width):
    spec = GraphSpec(5, 1, edges=Radius(1.0, features), position_dim=3)
    edges = spec.edges_of(random_graph(spec, (2,)))
    assert spec.edge_features == width
    assert (0 if edges.attr is None else edges.attr.shape[-1]) == width


def test_features_of_an_environments_own():
    def relative(graph, pairs):
        return graph["x"].unsqueeze(-2) - graph["x"].unsqueeze(-3)

    for rule in (Radius, Nearest):
        spec = GraphSpec(4, 2, edges=rule(2, (PairFunction(relative, 2),)), position_dim=1)
        graph = random_graph(spec, keep=1.0)
        edges = spec.edges_of(graph)
        source, target = edges.index
        torch.testing.assert_close(edges.attr, graph["x"][source] - graph["x"][target])


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Radius(0.0), "Radius.radius"),
        (lambda: Radius(math.nan), "Radius.radius"),
        (lambda: Nearest(0), "Nearest.k"),
        (lambda: Radius(1.0, senders=()), "Radius.senders"),
        (lambda: Nearest(1, receivers=(-1,)), "Nearest.receivers"),
        (lambda: Radius(1.0, features=(Distance,)), "Radius.features"),
        (lambda: Radius(1.0, features=("distance",)), "Radius.features"),
        (lambda: GraphSpec(3, 1, edges=Radius(1.0)), "position_dim"),
        (lambda: GraphSpec(3, 1, edges=Radius(1.0, senders=(2,)), position_dim=2), "node_types"),
    ],
)
def test_rules_that_no_graph_can_obey(build, field):
    with pytest.raises(ValueError, match=field):
        build()
