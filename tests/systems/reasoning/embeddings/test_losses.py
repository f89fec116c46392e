"""Losses of embeddings against their formulas, row by row."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.reasoning.embeddings.losses import dura, n3, one_vs_all, shared_negatives


def scores(m, k, seed=0):
    return torch.randn(m, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_one_vs_all_is_the_cross_entropy_of_the_right_entity():
    found, right = scores(4, 6), torch.tensor([0, 5, 2, 2])
    expected = -sum((found[i, t].exp() / found[i].exp().sum()).log() for i, t in enumerate(right.tolist()))
    torch.testing.assert_close(one_vs_all(found, right), expected / 4)


@given(st.integers(1, 5), st.integers(2, 8), st.integers(0, 1000))
def test_a_sample_of_every_other_entity_gives_the_full_softmax(rows, entities, seed):
    found = scores(rows, entities, seed)
    right = torch.arange(rows) % entities
    same = torch.arange(entities) == right.unsqueeze(1)
    own = found.gather(1, right.unsqueeze(1)).squeeze(1)
    sampled = shared_negatives(own, found, same=same, population=entities)
    torch.testing.assert_close(sampled, one_vs_all(found, right))


def test_a_sample_stands_for_all_in_expectation():
    found, entities, k = scores(1, 50), 50, 10
    own = found[:, 0]
    generator = torch.Generator().manual_seed(1)
    sums = []
    for _ in range(4000):
        sample = 1 + torch.randint(entities - 1, (k,), generator=generator)
        loss = shared_negatives(
            own, found[:, sample], same=torch.zeros(1, k, dtype=torch.bool), population=entities
        )
        sums.append(math.expm1(loss.item()))
    exact = math.expm1(one_vs_all(found, torch.tensor([0])).item())
    assert sum(sums) / len(sums) == pytest.approx(exact, rel=0.03)


def test_a_sample_of_nothing_but_the_right_entity_costs_nothing():
    loss = shared_negatives(
        torch.zeros(1), torch.zeros(1, 3), same=torch.ones(1, 3, dtype=torch.bool), population=9
    )
    assert loss == 0


def test_n3_is_the_sum_of_cubes_per_question():
    a, b = torch.tensor([[1.0, -2.0], [0.0, 3.0]]), torch.tensor([[-1.0], [2.0]])
    assert n3(a, b).item() == (1 + 8 + 27 + 1 + 8) / 2


def test_dura_weighs_entities_and_their_products_with_the_relation():
    given, relation, answer = scores(3, 4, 1).abs(), scores(3, 4, 2).abs(), scores(3, 4, 3).abs()
    total = 0.0
    for h, r, t in zip(
        given.flatten().tolist(), relation.flatten().tolist(), answer.flatten().tolist(), strict=True
    ):
        total += 0.5 * (h**2 + t**2) + 1.5 * ((h * r) ** 2 + (t * r) ** 2)
    assert dura(given, relation, answer).item() == pytest.approx(total / 3)
