"""Ranks against a search by hand: filtered, on both sides, ties at the middle of their places."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import NumericalStop
from edgewise.systems.reasoning.embeddings.ranking import Ranks, rank_all

E, P = 5, 2


def by_hand(atoms, known, table):
    """Ranks of heads and tails for scores `table [P, E, E]`, one comparison at a time."""
    true = {tuple(row) for row in known.tolist()}
    found = {"head": [], "tail": []}
    for p, h, t in atoms.tolist():
        own = table[p - 1, h - 1, t - 1]
        heads = [table[p - 1, e - 1, t - 1] for e in range(1, E + 1) if e != h and (p, e, t) not in true]
        tails = [table[p - 1, h - 1, e - 1] for e in range(1, E + 1) if e != t and (p, h, e) not in true]
        for side, others in (("head", heads), ("tail", tails)):
            better, equal = sum(s > own for s in others), sum(s == own for s in others)
            # The mean place over every order of those that tie.
            places = [1 + better + i for i in range(equal + 1)]
            found[side].append(sum(places) / len(places))
    return found


def rank(atoms, known, table, *, chunk=3):
    return rank_all(
        atoms,
        known,
        score_tails=lambda heads, predicates: table[predicates - 1, heads - 1],
        score_heads=lambda predicates, tails: table[predicates - 1, :, tails - 1],
        num_entities=E,
        chunk=chunk,
    )


@given(st.data())
def test_ranks_equal_those_by_hand(data):
    atom = st.tuples(st.integers(1, P), st.integers(1, E), st.integers(1, E))
    atoms = torch.tensor(data.draw(st.lists(atom, min_size=1, max_size=8)))
    known = torch.tensor(data.draw(st.lists(atom, min_size=1, max_size=20)))
    if data.draw(st.booleans()):
        known = torch.cat([known, atoms])
    values = data.draw(st.lists(st.integers(-2, 2), min_size=P * E * E, max_size=P * E * E))
    table = torch.tensor(values, dtype=torch.float32).reshape(P, E, E)
    ranks, expected = rank(atoms, known, table), by_hand(atoms, known, table)
    assert ranks.head.tolist() == expected["head"]
    assert ranks.tail.tolist() == expected["tail"]


def test_scores_that_are_all_alike_rank_in_the_middle():
    atoms = torch.tensor([[1, 1, 2]])
    ranks = rank(atoms, atoms, torch.zeros(P, E, E))
    assert ranks.head.tolist() == ranks.tail.tolist() == [(1 + E) / 2]


def test_other_true_answers_are_left_out_and_unknown_ones_are_not():
    table = torch.zeros(P, E, E)
    table[0, 0] = torch.tensor([0.0, 1, 2, 3, -1])
    atoms = torch.tensor([[1, 1, 2]])
    assert rank(atoms, atoms, table).tail.tolist() == [3]
    assert rank(atoms, torch.tensor([[1, 1, 2], [1, 1, 3], [1, 2, 4]]), table).tail.tolist() == [2]


def test_figures_are_means_over_both_sides():
    found = Ranks(head=torch.tensor([1.0, 4.0]).double(), tail=torch.tensor([2.0, 20.0]).double()).metrics()
    assert found["mrr"] == pytest.approx((1 + 1 / 4 + 1 / 2 + 1 / 20) / 4)
    assert (found["hits@1"], found["hits@3"], found["hits@10"]) == (0.25, 0.5, 0.75)
    assert found["mean_rank"] == 27 / 4
    assert (found["mrr_head"], found["mrr_tail"]) == (pytest.approx(0.625), pytest.approx(0.275))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [(0, 0, 1), (0, 0, 3), (0, 3, 1)])
def test_a_score_that_is_not_finite_ranks_nothing(value, place):
    table = torch.zeros(P, E, E)
    table[place] = value
    atoms = torch.tensor([[1, 1, 2]])
    with pytest.raises(NumericalStop, match="not finite"):
        rank(atoms, atoms, table)


def test_large_scores_whose_sum_overflows_are_ranked():
    largest = torch.finfo(torch.float32).max
    table = torch.zeros(P, E, E)
    table[0, 0, 1:4] = largest * torch.tensor([1.0, 0.9, 0.8])
    found = rank(torch.tensor([[1, 1, 3]]), torch.tensor([[1, 1, 3]]), table)
    assert found.tail.tolist() == [2.0]
