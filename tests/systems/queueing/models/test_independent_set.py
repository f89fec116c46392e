"""Independent sets: against the list of all of them."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import NumericalStop
from edgewise.objectives.imitation import exact_match, negative_log_likelihood
from edgewise.systems.queueing.models.decoding import take_in_turn
from edgewise.systems.queueing.models.independent_set import IndependentSet

graphs = st.tuples(st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(0, 1000))


def random_distribution(nodes, density, seed, *, requires_grad=False, entropy_samples=2):
    generator = torch.Generator().manual_seed(seed)
    adjacent = torch.rand(nodes, nodes, generator=generator) < density
    adjacent.fill_diagonal_(False)
    allowed = torch.rand(nodes, generator=generator) < 0.8
    logits = torch.randn(nodes, generator=generator, dtype=torch.float64)
    if requires_grad:
        logits.requires_grad_()
    return IndependentSet(logits, allowed, adjacent=adjacent, entropy_samples=entropy_samples), adjacent


def legal_sets(dist, adjacent):
    """All sets of allowed nodes without an edge inside, by brute force."""
    every = torch.tensor(list(product([False, True], repeat=dist.event_shape[0])))
    joined = adjacent | adjacent.T
    inside = every & dist.allowed
    clash = (every.unsqueeze(-1) & every.unsqueeze(-2) & joined).flatten(1).any(-1)
    return every[(inside == every).all(-1) & ~clash], every[clash | (inside != every).any(-1)]


@given(graphs)
def test_probabilities_of_all_legal_sets_add_up_to_one(size):
    dist, adjacent = random_distribution(*size)
    legal, illegal = legal_sets(dist, adjacent)
    torch.testing.assert_close(dist.log_prob(legal).exp().sum(), torch.tensor(1.0, dtype=torch.float64))
    assert (dist.log_prob(legal) > -1e3).all()
    assert (dist.log_prob(illegal) < -1e30).all()


@given(graphs)
def test_draws_and_mode_are_legal(size):
    dist, adjacent = random_distribution(*size)
    legal, _ = legal_sets(dist, adjacent)
    for drawn in (*dist.sample((10,)), dist.mode):
        assert (legal == drawn).all(-1).any()


def test_draws_have_their_probabilities():
    dist, adjacent = random_distribution(4, 0.4, 3)
    legal, _ = legal_sets(dist, adjacent)
    draws = dist.sample((20_000,))
    share = (draws.unsqueeze(1) == legal).all(-1).double().mean(0)
    torch.testing.assert_close(share, dist.log_prob(legal).exp(), rtol=0, atol=0.015)


def test_a_hand_computed_path():
    adjacent = torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).bool()
    half = IndependentSet(torch.zeros(3), torch.ones(3, dtype=torch.bool), adjacent=adjacent)
    sets = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]).bool()
    expected = torch.tensor([1 / 8, 1 / 4, 1 / 4, 1 / 8, 1 / 4])
    torch.testing.assert_close(half.log_prob(sets).exp(), expected)


def test_entropy_and_its_gradient_are_right_on_average():
    dist, adjacent = random_distribution(4, 0.5, 1, requires_grad=True, entropy_samples=20_000)
    legal, _ = legal_sets(dist, adjacent)
    scores = dist.log_prob(legal)
    exact = -(scores.exp() * scores).sum()
    (gradient,) = torch.autograd.grad(exact, dist.logits)
    estimate = dist.entropy()
    (estimated,) = torch.autograd.grad(estimate, dist.logits)
    torch.testing.assert_close(estimate, exact, rtol=0.01, atol=0)
    torch.testing.assert_close(estimated, gradient, rtol=0, atol=0.01)


def test_the_gradient_from_two_samples_is_unbiased():
    """A baseline that includes its own sample would halve the part by which sets become likely."""
    one, adjacent = random_distribution(4, 0.5, 1, requires_grad=True)
    legal, _ = legal_sets(one, adjacent)
    scores = one.log_prob(legal)
    (exact,) = torch.autograd.grad(-(scores.exp() * scores).sum(), one.logits)
    many = 40_000
    rows = one.logits.detach().expand(many, 4).clone().requires_grad_()
    torch.manual_seed(0)
    dist = IndependentSet(rows, one.allowed.expand(many, 4), adjacent=adjacent.expand(many, 4, 4))
    (estimated,) = torch.autograd.grad(dist.entropy().sum(), rows)
    error = estimated.std(0) / many**0.5
    assert ((estimated.mean(0) - exact).abs() <= 5 * error + 1e-12).all()


@given(graphs)
def test_an_exported_policy_decodes_the_mode(size):
    """With numpy alone, from edges in one direction, of which one is absent."""
    dist, adjacent = random_distribution(*size)
    index = torch.cat((adjacent.nonzero().T, torch.tensor([[0], [0]])), -1).unsqueeze(0)
    exists = (torch.arange(index.shape[-1]) < index.shape[-1] - 1).unsqueeze(0)
    inputs = {"node_mask": dist.allowed.unsqueeze(0), "edge_index": index, "edge_mask": exists}
    arrays = {name: value.numpy() for name, value in inputs.items()}
    found = take_in_turn(arrays, {"logits": dist.logits.unsqueeze(0).numpy()})
    assert torch.equal(torch.from_numpy(found[0]), dist.mode)


def test_batch_equals_singles():
    allowed, adjacent = torch.rand(3, 2, 5) < 0.8, torch.rand(3, 2, 5, 5) < 0.3
    logits = torch.randn(3, 2, 5)
    batch = IndependentSet(logits, allowed, adjacent=adjacent)
    action = batch.sample()
    for place in product(range(3), range(2)):
        single = IndependentSet(logits[place], allowed[place], adjacent=adjacent[place])
        torch.testing.assert_close(batch.log_prob(action)[place], single.log_prob(action[place]))
        assert torch.equal(batch.mode[place], single.mode)


def test_nothing_allowed_gives_the_empty_set():
    dist = IndependentSet(
        torch.ones(3), torch.zeros(3, dtype=torch.bool), adjacent=torch.zeros(3, 3, dtype=torch.bool)
    )
    assert not dist.sample().any()
    assert dist.log_prob(dist.sample()) == 0
    assert dist.entropy() == 0


def test_one_sample_has_no_other_to_be_compared_with():
    with pytest.raises(ValueError, match="entropy_samples must be at least 2, got 1"):
        random_distribution(3, 0.5, 0, entropy_samples=1)


def line(logits):
    """Sets on a line of three nodes, all allowed."""
    adjacent = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=torch.bool)
    allowed = torch.ones_like(logits, dtype=torch.bool)
    return IndependentSet(logits, allowed, adjacent=adjacent.expand(*logits.shape[:-1], 3, 3))


@given(st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_the_surprise_of_a_set_is_that_of_the_nodes_that_were_asked(logits):
    """Node 1 is not asked once node 0 has joined; so its logit cannot matter."""
    distribution = line(torch.tensor([logits], dtype=torch.float64))
    joined = [1 / (1 + math.exp(-logit)) for logit in logits]
    wanted = torch.tensor([[True, False, True]])
    by_hand = -math.log(joined[0]) - math.log(joined[2])
    assert math.isclose(negative_log_likelihood(distribution, wanted).item(), by_hand, rel_tol=1e-9)
    assert negative_log_likelihood(distribution, torch.tensor([[True, True, False]])).item() > 1e30


def test_a_set_matches_only_as_a_whole():
    distribution = line(torch.tensor([[2.0, 2.0, 2.0], [2.0, 2.0, -2.0], [-2.0, 2.0, 2.0]]))
    wanted = torch.tensor([[True, False, True], [True, False, True], [False, True, False]])
    assert exact_match(distribution, wanted).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_logits_of_allowed_nodes_must_be_finite(value):
    allowed, apart = torch.tensor([[True, False, True]]), torch.zeros(1, 3, 3, dtype=torch.bool)
    with pytest.raises(NumericalStop, match="not finite"):
        IndependentSet(torch.tensor([[value, 0.0, 0.0]]), allowed, adjacent=apart)
    assert IndependentSet(torch.tensor([[0.0, value, 0.0]]), allowed, adjacent=apart).sample() is not None
