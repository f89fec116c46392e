"""Constant graphs kept once: what comes back is what was put in."""

import copy
import math

import pytest
import torch
from hypothesis import given
from tests.graphs.random_graphs import leads, random_bank, random_graph, seeds, sizes

from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank


@given(seed=seeds, lead=leads, num_nodes=sizes)
def test_a_graph_has_the_edges_of_its_topology(seed, lead, num_nodes):
    bank = random_bank(num_nodes, generator=torch.Generator().manual_seed(seed))
    spec = GraphSpec(num_nodes, 1, edges=Topology(bank))
    graph = random_graph(spec, lead, seed=seed)
    edges = spec.edges_of(graph)
    assert edges.index.shape == (*lead, 2, bank.num_edges)
    assert edges.attr.shape == (*lead, bank.num_edges, 2)
    for row, one in enumerate(graph.reshape(math.prod(lead)).unbind(0)):
        number, exists = int(one["topology"]), one["node_mask"]
        found = edges.mask.reshape(-1, bank.num_edges)[row] if bank.num_edges else edges.mask.new_zeros(0)
        for slot in range(bank.num_edges):
            source, target = bank.index[number, :, slot].tolist()
            assert bool(found[slot]) == bool(bank.mask[number, slot] and exists[source] and exists[target])


def test_edge_lists_of_every_kind_become_one_bank():
    bank = TopologyBank.from_edge_lists([[(0, 1), (1, 2)], torch.tensor([[2], [0]]), []])
    assert len(bank) == 3
    assert bank.index.tolist() == [[[0, 1], [1, 2]], [[2, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert bank.mask.tolist() == [[True, True], [True, False], [False, False]]
    assert bank.num_features == 0


def test_both_ways_repeats_the_features():
    bank = TopologyBank.from_edge_lists([[(0, 1)]], [torch.tensor([[5.0]])], both_ways=True)
    assert bank.index.tolist() == [[[0, 1], [1, 0]]]
    assert bank.attr.tolist() == [[[5.0], [5.0]]]


def test_a_bank_without_any_edge():
    bank = TopologyBank.from_edge_lists([[], []], [torch.zeros(0, 2), torch.zeros(0, 2)])
    spec = GraphSpec(1, 1, edges=Topology(bank))
    edges = spec.edges_of(spec.zeros(3))
    assert edges.index.shape == (3, 2, 0)
    assert edges.attr.shape == (3, 0, 2)


def test_the_bank_is_copied_to_a_device_once():
    bank = TopologyBank.from_edge_lists([[(0, 1)]], [torch.ones(1, 1)])
    assert bank.on(torch.device("cpu")) is bank
    elsewhere = bank.on(torch.device("meta"))
    assert elsewhere.index.device.type == elsewhere.attr.device.type == "meta"
    assert bank.on(torch.device("meta")) is elsewhere
    assert copy.deepcopy(bank).index.tolist() == bank.index.tolist()


def test_only_the_id_is_stored():
    spec = GraphSpec(3, 1, edges=Topology(TopologyBank.from_edge_lists([[(0, 1)], [(1, 2)]])))
    assert set(spec.zeros(4).keys()) == {"x", "node_mask", "topology"}
    assert spec.zeros(4)["topology"].shape == (4,)
    assert spec.composite((4,))["topology"].space.high.max() == 1


INDEX, MASK = torch.zeros(1, 2, 3, dtype=torch.int64), torch.ones(1, 3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TopologyBank.from_edge_lists([]), "at least one edge list"),
        (lambda: TopologyBank.from_edge_lists([[(0, -1)]]), "edge list 0 has the node -1"),
        (lambda: TopologyBank.from_edge_lists([[], torch.zeros(3, 2).long()]), "edge list 1"),
        (lambda: TopologyBank.from_edge_lists([torch.zeros(2, 2)]), "edge list 0"),
        (lambda: TopologyBank.from_edge_lists([[(0, 1)]], []), "1 edge lists but 0"),
        (lambda: TopologyBank.from_edge_lists([[(0, 1)]], [torch.zeros(2, 1)]), "edge list 0 has 1 edges"),
        (lambda: TopologyBank(INDEX[0], MASK), "index"),
        (lambda: TopologyBank(INDEX, MASK[:, :2]), "mask"),
        (lambda: TopologyBank(INDEX.int(), MASK), "int64"),
        (lambda: TopologyBank(INDEX - 1, MASK), "from zero"),
        (lambda: TopologyBank(INDEX[:0], MASK[:0]), "at least one"),
        (lambda: TopologyBank(INDEX, MASK, torch.zeros(1, 2, 1)), "attr"),
        (
            lambda: GraphSpec(3, 1, edges=Topology(TopologyBank.from_edge_lists([[], [(0, 3)]]))),
            "topology 1 has an edge at node 3",
        ),
    ],
)
def test_banks_that_cannot_be(build, message):
    with pytest.raises(ValueError, match=message):
        build()
