"""Schedulers against brute force over all sets, loops over nodes, and each other."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.systems.queueing.graphs import ConflictGraphs, conflict_graphs
from edgewise.systems.queueing.schedulers import SetScheduler, local_greedy, local_maxima
from edgewise.systems.queueing.sets.conflict_graph import ConflictGraph
from edgewise.systems.queueing.sets.listing import independent_sets

WORLDS = 6
LIMITS = ({"limit": 20_000}, {"limit": 0}, {"limit": 0, "max_states": 0})
"""Sets are listed, walked through in a diagram, or solved for."""


@st.composite
def weighted_graphs(draw, largest=7):
    """A few graphs, which of them each world has, whole weights with many ties, and an order of the nodes."""
    graphs = []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, largest))
        every = list(itertools.combinations(range(count), 2))
        graphs.append(
            ConflictGraph(count, tuple(draw(st.lists(st.sampled_from(every), unique=True)) if every else ()))
        )
    both = ConflictGraphs(tuple(f"g{number}" for number in range(len(graphs))), tuple(graphs))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    number = torch.randint(len(graphs), (WORLDS,), generator=generator)
    weight = (
        torch.randint(0, 4, (WORLDS, both.num_nodes), generator=generator).float() * both.node_mask[number]
    )
    order = torch.rand(weight.shape, generator=generator).argsort(-1)
    return both, number, weight, order


def best_by_hand(graph, scores, order, counted):
    """Over all sets: scores in turn, then without the last counted node of the order, and so on."""

    def rank(members):
        values = [sum(score[node] for node in members) for score in scores]
        last_first = sorted((order[node] for node in members if counted[node]), reverse=True)
        return [-value for value in values], last_first

    every = [row.nonzero().flatten().tolist() for row in independent_sets(graph.adjacency)]
    return min(every, key=rank)


@settings(max_examples=50)
@given(weighted_graphs(), st.booleans())
def test_the_best_set_is_that_of_brute_force_listed_walked_or_solved(case, most_members):
    graphs, number, weight, order = case
    counted = weight > 0
    scores = [weight, counted.float()] if most_members else [weight]
    listed = SetScheduler(graphs).best(number, scores, order=order, counted=counted)
    walked = SetScheduler(graphs, limit=0).best(number, scores, order=order, counted=counted)
    solver = SetScheduler(graphs, limit=0, max_states=0)
    solved = solver.best(number, scores, order=order, counted=counted)
    for world in range(WORLDS):
        graph = graphs.graphs[number[world]]
        rows = [score[world].tolist() for score in scores]
        expected = best_by_hand(graph, rows, order[world].tolist(), counted[world].tolist())
        kept = {node for node in expected if counted[world, node]}
        assert set((listed & counted)[world].nonzero().flatten().tolist()) == kept
        assert set((walked & counted)[world].nonzero().flatten().tolist()) == kept
        assert set((solved & counted)[world].nonzero().flatten().tolist()) == kept


@pytest.mark.parametrize("unit", [1.0, 0.3])
def test_large_graphs_are_solved_as_exactly_as_listed(unit):
    graphs = conflict_graphs(("geometric24*2", "line18"))
    number = torch.tensor([0, 1, 2, 0])
    generator = torch.Generator().manual_seed(0)
    packets = torch.randint(0, 5, (4, 24), generator=generator) * graphs.node_mask[number]
    weight = packets.double() * unit
    order = torch.arange(24).expand(4, 24)
    chosen, solved = (
        SetScheduler(graphs, **limits).best(number, [weight.float()], order=order, counted=weight > 0)
        for limits in ({"limit": 20_000}, {"limit": 0, "max_states": 0})
    )
    heaviest, solved_weight = (packets * chosen).sum(-1), (packets * solved).sum(-1)
    assert torch.equal(heaviest, solved_weight)
    assert unit != 1.0 or torch.equal(chosen & (weight > 0), solved & (weight > 0))


def test_an_order_of_more_nodes_than_a_float_holds_bits():
    graphs = conflict_graphs(("30:0-29,1-28",))
    weight = torch.zeros(1, 30)
    weight[0, [0, 1, 28, 29]] = 1.0
    order = torch.arange(30).expand(1, 30)
    chosen = SetScheduler(graphs).best(
        torch.zeros(1, dtype=torch.long), [weight], order=order, counted=weight > 0
    )
    assert (chosen & (weight > 0))[0].nonzero().flatten().tolist() == [0, 1]


@given(weighted_graphs())
def test_local_greedy_is_the_loop_over_rounds(case):
    graphs, number, weight, order = case
    open_nodes = weight > 0
    chosen = local_greedy(weight, graphs.adjacency[number], open_nodes=open_nodes, order=order)
    first = local_maxima(weight, graphs.adjacency[number], open_nodes=open_nodes, order=order)
    for world in range(WORLDS):
        adjacency = graphs.adjacency[number[world]]
        left = set(open_nodes[world].nonzero().flatten().tolist())
        expected, rounds = set(), []
        key = {node: (-weight[world, node].item(), order[world, node].item()) for node in left}
        while left:
            winners = {n for n in left if all(key[n] < key[m] for m in left if adjacency[n, m])}
            rounds.append(winners)
            expected |= winners
            left -= winners | {m for m in left for n in winners if adjacency[n, m]}
        assert set(chosen[world].nonzero().flatten().tolist()) == expected
        assert set(first[world].nonzero().flatten().tolist()) == (rounds[0] if rounds else set())


@given(weighted_graphs())
def test_renumbering_the_nodes_renumbers_the_schedule(case):
    graphs, _, weight, order = case
    graph = graphs.graphs[0]
    size = graph.num_nodes
    shuffle = torch.randperm(size, generator=torch.Generator().manual_seed(size))
    back = shuffle.argsort()
    pairs = tuple(sorted(tuple(sorted((int(back[low]), int(back[high])))) for low, high in graph.pairs))
    renumbered = ConflictGraphs(("g",), (ConflictGraph(size, pairs),))
    single = ConflictGraphs(("g",), (graph,))
    zero = torch.zeros(WORLDS, dtype=torch.long)
    weight, order = weight[:, :size], order[:, :size].argsort(-1).argsort(-1)
    here = SetScheduler(single).best(zero, [weight], order=order, counted=weight > 0)
    there = SetScheduler(renumbered).best(
        zero, [weight[:, shuffle]], order=order[:, shuffle], counted=weight[:, shuffle] > 0
    )
    assert torch.equal((here & (weight > 0))[:, shuffle], there & (weight[:, shuffle] > 0))


def test_random_sets_are_maximal_and_evenly_drawn():
    graphs = conflict_graphs(("line3", "clique4"))
    number = torch.arange(2).repeat(4000)
    drawn = SetScheduler(graphs).random(number, torch.Generator().manual_seed(0))
    line, clique = drawn[number == 0], drawn[number == 1]
    assert line[:, 1].float().mean().item() == pytest.approx(0.5, abs=0.03)
    assert torch.equal(line[:, 0], ~line[:, 1])
    assert torch.allclose(clique.float().mean(0), torch.full((4,), 0.25), atol=0.03)


def test_random_sets_of_a_graph_with_too_many_to_list_are_evenly_drawn():
    """A line of five nodes has four maximal sets; node 0 is in three of them."""
    scheduler = SetScheduler(conflict_graphs(("line5",)), limit=0)
    drawn = scheduler.random(torch.zeros(8000, dtype=torch.long), torch.Generator().manual_seed(0))
    codes, counts = drawn.unique(dim=0, return_counts=True)
    assert len(codes) == 4
    assert counts.min() > 1800


def test_random_sets_of_a_graph_that_is_too_wide_are_refused():
    scheduler = SetScheduler(conflict_graphs(("line30",)), limit=10, max_states=2)
    with pytest.raises(ValueError, match="random-greedy"):
        scheduler.random(torch.zeros(1, dtype=torch.long), torch.Generator())


@settings(max_examples=60, derandomize=True)
@given(weighted_graphs(largest=8), st.booleans())
def test_forced_ties_are_broken_by_the_order_alone(case, most_members):
    """All weights are equal, so that many sets are best, and nodes that have nothing to send do not count."""
    graphs, number, weight, order = case
    counted = (weight != 1) & graphs.node_mask[number]
    weight = counted.float()
    scores = [weight, torch.ones_like(weight)] if most_members else [weight]
    listed = SetScheduler(graphs).best(number, scores, order=order, counted=counted)
    for world in range(WORLDS):
        graph = graphs.graphs[number[world]]
        rows = [score[world].tolist() for score in scores]
        expected = best_by_hand(graph, rows, order[world].tolist(), counted[world].tolist())
        kept = {node for node in expected if counted[world, node]}
        assert set((listed & counted)[world].nonzero().flatten().tolist()) == kept


def test_ties_among_more_nodes_than_one_key_holds():
    """A line of 24 nodes, all equal: every other node from one end, and the order says from which."""
    graphs = conflict_graphs(("line24",))
    weight = torch.ones(2, 24)
    order = torch.stack((torch.arange(24), torch.arange(24).flip(0)))
    for limits in LIMITS:
        chosen = SetScheduler(graphs, **limits).best(
            torch.zeros(2, dtype=torch.int64), [weight], order=order, counted=weight > 0
        )
        assert chosen[0].nonzero().flatten().tolist() == list(range(0, 24, 2))
        assert chosen[1].nonzero().flatten().tolist() == list(range(1, 24, 2))


def test_the_last_node_decides_before_those_that_another_key_holds():
    """Two sets of equal weight, {3, 20} and {5, 19}: the second is without the last node of all four."""
    sets = ((3, 20), (5, 19))
    pairs = tuple((min(pair), max(pair)) for pair in itertools.product(*sets))
    graphs = ConflictGraphs(("two sets",), (ConflictGraph(22, pairs),))
    weight = torch.zeros(1, 22)
    weight[:, [3, 5, 19, 20]] = 1.0
    for limits in LIMITS:
        chosen = SetScheduler(graphs, **limits).best(
            torch.zeros(1, dtype=torch.int64), [weight], order=torch.arange(22)[None], counted=weight > 0
        )
        assert (chosen & (weight > 0))[0].nonzero().flatten().tolist() == [5, 19]
