"""Heaviest independent sets by integer programming, against a look at every set."""

import itertools
import random

import pytest
import torch

from edgewise.systems.queueing.sets.conflict_graph import ConflictGraph
from edgewise.systems.queueing.sets.heaviest import heaviest_set


def looked_for(graph, weights, order, counted):
    """The best of all sets: by weights in turn, then without the last counted node, and so on."""
    last_first = sorted((node for node in range(graph.num_nodes) if counted[node]), key=lambda n: -order[n])

    def rank(chosen):
        weighed = [round(sum(weight[node] for node in chosen), 9) for weight in weights]
        return *weighed, *(node not in chosen for node in last_first)

    sets = itertools.chain.from_iterable(
        itertools.combinations(range(graph.num_nodes), size) for size in range(graph.num_nodes + 1)
    )
    allowed = [set(one) for one in sets if not any({*pair} <= set(one) for pair in graph.pairs)]
    best = max(map(rank, allowed))
    return [one for one in allowed if rank(one) == best]


@pytest.mark.parametrize("seed", range(12))
def test_a_look_at_every_set_finds_none_better(seed):
    dice, nodes = random.Random(seed), 6
    pairs = tuple(pair for pair in itertools.combinations(range(nodes), 2) if dice.random() < 0.4)
    graph = ConflictGraph(nodes, pairs)
    weights = [[float(dice.randint(0, 2)) for _ in range(nodes)] for _ in range(2)]
    order = dice.sample(range(nodes), nodes)
    counted = [dice.random() < 0.7 for _ in range(nodes)]
    found = heaviest_set(
        graph, [*map(torch.tensor, weights)], order=torch.tensor(order), counted=torch.tensor(counted)
    )
    assert set(found.nonzero().flatten().tolist()) in looked_for(graph, weights, order, counted)


def test_nodes_that_do_not_count_break_no_tie():
    ends = ConflictGraph(2, ((0, 1),))
    order, one = torch.tensor([0, 1]), torch.ones(2)
    chosen = heaviest_set(ends, [one], order=order, counted=torch.tensor([True, True]))
    assert chosen.tolist() == [True, False]
    chosen = heaviest_set(ends, [one], order=order, counted=torch.tensor([True, False]))
    assert chosen.tolist() == [False, True]
