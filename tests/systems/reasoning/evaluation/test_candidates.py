"""Candidate lists, ranks and fused scores against loops that a person can check."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.reasoning.evaluation.candidate_ranks import (
    area_under_precision_recall,
    hits,
    mean_reciprocal_rank,
    ranks,
)
from edgewise.systems.reasoning.evaluation.candidates import batches, draw_candidates
from edgewise.systems.reasoning.evaluation.fusion import fit

ENTITIES = 9


def _atoms(seed, count=25):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(1, ENTITIES + 1, (count, 3), generator=generator)
    drawn[:, 0] = drawn[:, 0] % 2 + 1
    return drawn.unique(dim=0)


@given(st.integers(0, 10_000))
def test_all_candidates_are_those_that_a_loop_finds(seed):
    known = _atoms(seed)
    queries = known[::3]
    lists = draw_candidates(queries, known, num_entities=ENTITIES)
    truths = {tuple(row) for row in known.tolist()}
    assert len(lists) == 2 * len(queries)
    for row in range(len(lists)):
        query, column = queries[lists.query[row]].tolist(), int(lists.side[row])
        expected = set()
        for entity in range(1, ENTITIES + 1):
            other = [*query[:column], entity, *query[column + 1 :]]
            if tuple(other) not in truths:
                expected.add(tuple(other))
        found = [tuple(atom) for atom in lists.atoms[row][lists.exists[row]].tolist()]
        assert found[0] == tuple(query)
        assert len(found) == len(set(found))
        assert set(found[1:]) == expected


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_drawn_candidates_are_some_of_all_and_as_many_as_there_can_be(seed, negatives):
    known = _atoms(seed)
    every = draw_candidates(known, known, num_entities=ENTITIES)
    some = draw_candidates(known, known, num_entities=ENTITIES, negatives=negatives, seed=seed)
    for row in range(len(every)):
        there = {tuple(atom) for atom in every.atoms[row][every.exists[row]].tolist()}
        drawn = [tuple(atom) for atom in some.atoms[row][some.exists[row]].tolist()]
        assert len(drawn) == len(set(drawn)) == min(negatives + 1, len(there))
        assert set(drawn) <= there


def test_candidates_are_drawn_evenly():
    query = torch.tensor([[1, 1, 2]])
    seen = torch.zeros(ENTITIES + 1)
    for seed in range(700):
        lists = draw_candidates(query, query, num_entities=ENTITIES, sides=("tail",), negatives=2, seed=seed)
        seen[lists.atoms[0, 1:, 2]] += 1
    assert seen[2] == 0
    others = seen[[1, 3, 4, 5, 6, 7, 8, 9]]
    expected = 1400 / 8
    assert ((others - expected) ** 2 / expected).sum() < 24.3  # chi-square of 7 degrees at 0.1 %


def test_only_entities_of_the_same_domain_stand_for_each_other():
    query = torch.tensor([[1, 1, 2]])
    domains = [(1, 3, 5), (2, 4)]
    lists = draw_candidates(query, query, num_entities=ENTITIES, domains=domains)
    by_side = {
        int(side): set(lists.atoms[row, 1:, int(side)].tolist()) for row, side in enumerate(lists.side)
    }
    assert by_side == {1: {3, 5}, 2: {4, 0}}


def test_batches_name_every_candidate_once():
    known = _atoms(3)
    lists = draw_candidates(known, known, num_entities=ENTITIES)
    scores = torch.zeros(lists.exists.numel(), dtype=torch.int64)
    for place, atoms in batches(lists, 7):
        assert (atoms == lists.atoms.flatten(0, 1)[place]).all()
        scores[place] += 1
    assert (scores.view_as(lists.exists) == lists.exists).all()


def test_ranks_count_ties_half_and_leave_absent_candidates_out():
    scores = torch.tensor([[1.0, 2.0, 1.0, 9.0], [5.0, 1.0, 1.0, 1.0]])
    exists = torch.tensor([[True, True, True, False], [True, True, True, True]])
    rank = ranks(scores, exists)
    assert rank.tolist() == [2.5, 1.0]
    assert mean_reciprocal_rank(rank) == pytest.approx(0.7)
    assert (hits(rank, 1), hits(rank, 3)) == (0.5, 1.0)


def test_average_precision_by_hand():
    scores = torch.tensor([0.9, 0.8, 0.7, 0.6])
    labels = torch.tensor([True, False, True, False])
    assert area_under_precision_recall(scores, labels) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert area_under_precision_recall(torch.zeros(4), labels) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="positive"):
        area_under_precision_recall(scores, torch.zeros(4, dtype=torch.bool))


def test_fusion_finds_the_score_that_tells_and_never_does_worse_than_one_alone():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(200, 10, 2, generator=generator)
    scores[:, 0, 1] += 2.0
    exists = torch.ones(200, 10, dtype=torch.bool)
    fused = fit(scores, exists, names=("noise", "signal"))
    assert abs(fused.weights[0]) < 0.3 * fused.weights[1]
    useless = fit(torch.randn(50, 10, 2, generator=generator), exists[:50], names=("a", "b"))
    alone = mean_reciprocal_rank(ranks(scores[:50, :, 0], exists[:50]))
    assert fused.fitted_on == 200
    assert mean_reciprocal_rank(ranks(fused(scores), exists)) > alone
    assert len(useless.weights) == 2
    third = torch.cat((scores, torch.zeros(200, 10, 1)), -1)
    assert fit(third, exists, names=("noise", "signal", "nothing")).weights[2] == 0.0
    with pytest.raises(ValueError, match="finite"):
        fit(torch.full((2, 2, 1), torch.inf), exists[:2, :2], names=("a",))
