"""Conflict graphs against networkx, their independent sets against counting and brute force."""

from itertools import combinations

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.queueing.graphs import conflict_graph, conflict_graphs
from edgewise.systems.queueing.sets.conflict_graph import ConflictGraph
from edgewise.systems.queueing.sets.heaviest import uniform_capacity
from edgewise.systems.queueing.sets.listing import independent_sets, maximal_sets

SHAPES = {
    "line5": nx.path_graph(5),
    "ring6": nx.cycle_graph(6),
    "star5": nx.star_graph(4),
    "clique4": nx.complete_graph(4),
    "grid3x4": nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4), ordering="sorted"),
    "tree6": nx.Graph([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]),
    "bipartite3x4": nx.complete_bipartite_graph(3, 4),
    "5:0-1,0-2,0-3,1-2,1-3,2-4,3-4": nx.Graph([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)]),
    "3:": nx.empty_graph(3),
}
COUNTS = {
    "line3": 5,
    "line4": 8,
    "line8": 55,
    "ring5": 11,
    "ring6": 18,
    "ring10": 123,
    "grid2x3": 17,
    "grid3x3": 63,
    "star5": 17,
}


@st.composite
def conflict_graphs_drawn(draw, largest=9):
    count = draw(st.integers(1, largest))
    every = list(combinations(range(count), 2))
    return ConflictGraph(count, tuple(draw(st.lists(st.sampled_from(every), unique=True)) if every else ()))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_those_of_networkx(name):
    expected = torch.from_numpy(nx.to_numpy_array(SHAPES[name], nodelist=sorted(SHAPES[name]))).bool()
    assert torch.equal(conflict_graph(name).adjacency, expected)


@pytest.mark.parametrize("name", COUNTS)
def test_known_numbers_of_independent_sets(name):
    assert len(independent_sets(conflict_graph(name).adjacency)) == COUNTS[name]


@given(conflict_graphs_drawn())
def test_maximal_sets_are_the_sets_that_nothing_can_join(graph):
    every = independent_sets(graph.adjacency)
    as_sets = {frozenset(row.nonzero().flatten().tolist()) for row in every}
    largest = {s for s in as_sets if not any(s < other for other in as_sets)}
    found = [frozenset(row.nonzero().flatten().tolist()) for row in maximal_sets(graph.adjacency)]
    assert set(found) == largest
    assert len(found) == len(largest)


def test_too_many_maximal_sets_are_not_listed():
    assert maximal_sets(conflict_graph("line30").adjacency, limit=4409) is None
    assert len(maximal_sets(conflict_graph("line30").adjacency, limit=4410)) == 4410


def test_all_sets_of_a_large_graph_are_refused():
    with pytest.raises(ValueError, match="17 nodes"):
        independent_sets(conflict_graph("line17").adjacency)


@pytest.mark.parametrize(
    ("name", "capacity"),
    [
        ("line3", 1 / 2),
        ("ring5", 2 / 5),
        ("ring7", 3 / 7),
        ("grid3x3", 1 / 2),
        ("clique5", 1 / 5),
        ("2:", 1.0),
    ],
)
def test_capacities_that_are_known(name, capacity):
    assert uniform_capacity(conflict_graph(name)) == pytest.approx(capacity)


def test_graphs_of_different_sizes_are_padded():
    graphs = conflict_graphs(("line3", "ring5", "clique1"))
    assert graphs.node_mask.sum(-1).tolist() == [3, 5, 1]
    for number, graph in enumerate(graphs.graphs):
        size = graph.num_nodes
        assert torch.equal(graphs.adjacency[number, :size, :size], graph.adjacency)
        assert not graphs.adjacency[number, size:].any()


def test_geometric_graphs_follow_their_seed_and_differ():
    one, again, other = (conflict_graphs(("geometric12*3",), seed=seed) for seed in (0, 0, 1))
    assert one.graphs == again.graphs
    assert len({graph.pairs for graph in (*one.graphs, *other.graphs)}) == 6
    assert one.numbers(("geometric12*3",)) == [0, 1, 2]


def test_preferential_attachment_gives_two_edges_to_every_new_node():
    one, other = conflict_graphs(("barabasi30*2",)).graphs
    for graph in (one, other):
        assert len(graph.pairs) == len(set(graph.pairs)) == 3 + 2 * 27
        for node in range(3, 30):
            assert sum(high == node for _, high in graph.pairs) == 2
    assert one.pairs != other.pairs
    assert max(int(graph.adjacency.sum(-1).max()) for graph in (one, other)) >= 8
