"""Padded networks, their distances and their capacity, against networkx and cases solved by hand."""

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import DataError
from edgewise.systems.multihop.networks.batch import networks_of
from edgewise.systems.multihop.networks.generate import barabasi_network, capacity_factor, scaled
from edgewise.systems.multihop.networks.instance import Instance, Link, TrafficClass
from edgewise.systems.multihop.scenario import load_instances


def directed(instance):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(instance.num_nodes))
    graph.add_weighted_edges_from((link.start, link.end, 1 / link.rate) for link in instance.links)
    return graph


@given(st.integers(4, 12), st.integers(0, 1000))
def test_distances_are_those_of_networkx(nodes, seed):
    instances = [barabasi_network(nodes, seed=seed), *load_instances(("two-path", "diamond"))]
    networks = networks_of(instances)
    for number, instance in enumerate(instances):
        graph = directed(instance)
        for kind, traffic in enumerate(instance.classes):
            backwards = graph.reverse()
            delay = nx.single_source_dijkstra_path_length(backwards, traffic.destination)
            hops = nx.single_source_shortest_path_length(backwards, traffic.destination)
            for node in range(instance.num_nodes):
                inf = float("inf")
                assert networks.hops[number, node, kind].item() == hops.get(node, inf)
                assert networks.delay[number, node, kind].item() == pytest.approx(delay.get(node, inf))


def test_links_are_sorted_by_start_and_remember_their_place():
    links = (Link(2, 0, 1.0), Link(0, 1, 2.0), Link(1, 2, 3.0), Link(0, 2, 4.0))
    one = Instance("one", 3, links, (TrafficClass(2, {0: 0.5}),))
    networks = networks_of([one, *load_instances(("two-path",))])
    assert networks.start[0, :4].tolist() == [0, 0, 1, 2]
    assert networks.rate[0, :4].tolist() == [2.0, 4.0, 3.0, 1.0]
    assert networks.number[0, :4].tolist() == [1, 3, 2, 0]
    assert networks.first[0, :4].tolist() == [0, 0, 2, 3]
    assert not networks.link_mask[0, 4:].any()
    assert not networks.usable[0, 4:].any()
    assert (networks.start.diff(dim=-1) >= 0).all()


def test_a_link_is_usable_only_towards_its_destination():
    two_path = networks_of(load_instances(("two-path",)))
    ends = list(zip(two_path.start[0].tolist(), two_path.end[0].tolist(), strict=True))
    towards_seven, towards_five = two_path.usable[0].T.tolist()
    assert all(towards_seven)
    assert [pair for pair, usable in zip(ends, towards_five, strict=True) if usable] == [
        (0, 1),
        (1, 3),
        (3, 5),
    ]


def test_capacities_solved_by_hand():
    two_path, line, cross = load_instances(("two-path", "line4", "cross"))
    assert capacity_factor(two_path) == pytest.approx(1 / 0.7)
    assert capacity_factor(line) == pytest.approx(1 / 0.8)
    assert capacity_factor(cross) == pytest.approx(2 / 0.8)


def test_a_drawn_network_carries_the_load_it_was_given():
    drawn = barabasi_network(12, seed=5, load=0.7)
    assert capacity_factor(drawn) == pytest.approx(1 / 0.7, rel=0.01)
    assert capacity_factor(scaled(drawn, 0.5)) == pytest.approx(2 / 0.7, rel=0.02)
    degrees = [len([link for link in drawn.links if link.start == node]) for node in range(12)]
    assert sum(degrees) / 12 == pytest.approx(4 - 6 / 12)
    assert drawn == barabasi_network(12, seed=5, load=0.7)
    assert drawn != barabasi_network(12, seed=6, load=0.7)


def test_copies_are_different_networks():
    drawn = load_instances(("barabasi8*3", "barabasi8*3"))
    assert len({instance.links for instance in drawn}) > 3
    assert len({repr(instance.classes) for instance in drawn}) == 6


def test_no_network_is_an_error():
    with pytest.raises(DataError, match="no network instance"):
        networks_of([])


def test_padding_is_never_reached():
    networks = networks_of(load_instances(("line4", "two-path")))
    assert networks.hops[0, 4:].isinf().all()
    assert not torch.isfinite(networks.delay[0, 4:]).any()
