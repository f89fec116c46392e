"""Beam search against a recursion over every way a proof can go."""

import math

import torch

from edgewise.systems.reasoning.evaluation.beam_search import Offered, best_of_each, search

TRUE, FALSE = 90, 91
TREE = {
    1: [(2, 0.5), (3, 0.3), (FALSE, 0.2)],
    2: [(TRUE, 0.25), (4, 0.75)],
    3: [(TRUE, 1.0)],
    4: [(FALSE, 0.9), (TRUE, 0.1)],
    5: [(FALSE, 1.0)],
    6: [(6, 0.5), (TRUE, 0.5)],
}


def _steps(states, queries, last):
    rows = [
        (goal, owner, math.log(chance))
        for owner, state in enumerate(states[:, 0, 0].tolist())
        for goal, chance in TREE[state]
    ]
    goals, owner, chance = zip(*rows, strict=True)
    successors = torch.zeros(len(rows), 2, 3, dtype=torch.int64)
    successors[:, 0, 0] = torch.tensor(goals)
    return Offered(successors, torch.tensor(owner), torch.tensor(chance))


def _found(beam=10, depth=10):
    queries = torch.tensor([[1, 0, 0], [5, 0, 0], [6, 0, 0]])
    starts = torch.zeros(3, 2, 3, dtype=torch.int64)
    starts[:, 0] = queries
    return search(_steps, starts, queries, true=TRUE, ends=(FALSE,), beam=beam, depth=depth)


def _recursion(state, depth):
    if state == TRUE:
        return 1.0
    if state == FALSE or depth == 0:
        return 0.0
    return sum(chance * _recursion(goal, depth - 1) for goal, chance in TREE[state])


def test_a_wide_beam_finds_the_whole_probability():
    for depth in range(1, 8):
        expected = torch.tensor([_recursion(query, depth) for query in (1, 5, 6)], dtype=torch.float64)
        torch.testing.assert_close(_found(depth=depth).log_probability.exp(), expected)


def test_a_narrow_beam_finds_a_part_of_it():
    narrow, wide = _found(beam=1), _found()
    assert (narrow.log_probability <= wide.log_probability).all()
    assert narrow.log_probability[0].exp().isclose(torch.tensor(0.5 * 0.25 + 0.5 * 0.75 * 0.1).double())
    assert narrow.expanded[0] < wide.expanded[0]


def test_the_greedy_way_takes_the_likeliest_step_though_it_be_the_end():
    greedy = _found(beam=None)
    assert greedy.depth.tolist() == [-1, -1, -1]
    assert greedy.expanded.tolist() == [3, 1, 10]


def test_depths_are_of_the_shortest_proof():
    found = _found()
    assert found.depth.tolist() == [2, -1, 1]
    assert found.proved.tolist() == [True, False, True]
    assert found.log_probability[1] == -torch.inf


def test_the_best_of_each_owner_are_kept():
    scores = torch.tensor([1.0, 3.0, 2.0, 5.0, 4.0])
    owner = torch.tensor([0, 0, 0, 2, 2])
    assert best_of_each(scores, owner, 2).tolist() == [1, 2, 3, 4]
    assert best_of_each(scores, owner, 1).tolist() == [1, 3]
    assert best_of_each(scores[:0], owner[:0], 1).tolist() == []


def _equal_steps(states, queries, last):
    """Forty equally probable steps from 1, of which the one to 2 + q alone proves query q in the next."""
    if states[0, 0, 0] == 1:
        successors = torch.zeros(40 * len(states), 2, 3, dtype=torch.int64)
        successors[:, 0, 0] = 2 + torch.arange(40).repeat(len(states))
        owner = torch.arange(len(states)).repeat_interleave(40)
        return Offered(successors, owner, torch.full((len(owner),), -math.log(40)))
    proves = states[:, 0, 0] - 2 == queries[:, 1]
    successors = torch.zeros(len(states), 2, 3, dtype=torch.int64)
    successors[:, 0, 0] = torch.where(proves, TRUE, FALSE)
    return Offered(successors, torch.arange(len(states)), torch.zeros(len(states)))


def test_ties_keep_the_first_steps_unless_they_are_broken_at_random():
    queries = torch.tensor([[1, number, 0] for number in range(40)] * 50)
    starts = torch.zeros(len(queries), 2, 3, dtype=torch.int64)
    starts[:, 0] = torch.tensor([1, 0, 0])

    def proved(ties):
        found = search(
            _equal_steps, starts, queries, true=TRUE, ends=(FALSE,), beam=10, depth=2, ties=ties
        ).proved
        return found.view(50, 40).double().mean(0)

    assert proved(None).tolist() == [1.0] * 10 + [0.0] * 30
    shares = proved(torch.Generator().manual_seed(0))
    assert abs(shares.mean() - 0.25) < 0.05
    assert (shares > 0).all()
    assert (shares < 0.6).all()
    assert torch.equal(shares, proved(torch.Generator().manual_seed(0)))
