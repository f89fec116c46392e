"""Losses of embeddings against their formulas, row by row."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.reasoning.embeddings.losses import n3, one_vs_all, self_adversarial, shared_negatives


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


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_self_adversarial_follows_its_formula(temperature):
    own, wrong = scores(3, 1, 1).squeeze(1), scores(3, 5, 2)
    same = torch.zeros(3, 5, dtype=torch.bool)
    same[1, 2] = True
    total = 0.0
    for i in range(3):
        kept = [j for j in range(5) if not same[i, j]]
        weights = [math.exp(temperature * wrong[i, j]) for j in kept]
        total += math.log1p(math.exp(-own[i]))
        total += sum(
            weight / sum(weights) * math.log1p(math.exp(wrong[i, j]))
            for weight, j in zip(weights, kept, strict=True)
        )
    found = self_adversarial(own, wrong, same=same, temperature=temperature)
    assert found.item() == pytest.approx(total / 6)


def test_weights_of_negatives_pass_no_gradient():
    own, wrong = torch.zeros(1, dtype=torch.float64), scores(1, 3).requires_grad_()
    same = torch.zeros(1, 3, dtype=torch.bool)
    self_adversarial(own, wrong, same=same, temperature=1.0).backward()
    weights = wrong.detach().softmax(1)
    torch.testing.assert_close(wrong.grad, weights * wrong.detach().sigmoid() / 2)


def test_n3_is_the_sum_of_cubes_per_question():
    a, b = torch.tensor([[1.0, -2.0], [0.0, 3.0]]), torch.tensor([[-1.0], [2.0]])
    assert n3(a, b).item() == (1 + 8 + 27 + 1 + 8) / 2
