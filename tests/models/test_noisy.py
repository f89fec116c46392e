"""Noisy layers: the factored row is the noisy matrix, every row has its own noise, and none is silence."""

import torch
from tests.models.views import random_view

from edgewise.models.categorical import CategoricalValues, even_support
from edgewise.models.config import EgoConfig
from edgewise.models.ego import EgoSpec
from edgewise.models.noisy import NoisyLinear


def test_a_row_is_its_own_noisy_matrix():
    layer, x = NoisyLinear(4, 3), torch.randn(5, 4)
    torch.nn.init.normal_(layer.weight_sigma)
    p, q = layer.draw(x)
    found = layer(x, (p, q))
    for row in range(5):
        weight = layer.weight + layer.weight_sigma * torch.outer(q[row], p[row])
        bias = layer.bias + layer.bias_sigma * q[row]
        torch.testing.assert_close(found[row], weight @ x[row] + bias)


def test_noise_has_the_moments_of_the_signed_root_of_a_normal():
    p, q = NoisyLinear(8, 6).draw(torch.zeros(20_000, 8))
    assert p.shape == (20_000, 8)
    assert q.shape == (20_000, 6)
    for factor in (p, q):
        assert factor.mean().abs() < 0.02
        assert (factor.square().mean() - (2 / torch.pi) ** 0.5).abs() < 0.02  # E|z| of a standard normal


def test_without_noise_the_mean_decides():
    layer, x = NoisyLinear(4, 3), torch.randn(5, 4)
    torch.testing.assert_close(layer(x), x @ layer.weight.T + layer.bias)


def test_the_network_draws_anew_at_every_call_and_for_every_row():
    """The planted fault: noise that is drawn once and kept would give equal calls."""
    network = CategoricalValues(EgoSpec(), EgoConfig(), num_actions=3)
    view = random_view(1).expand(4)
    first, second = network(view), network(view)
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])
    assert torch.equal(network(view, noisy=False), network(view, noisy=False))
    draws = [network(view, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*draws)


def test_its_output_is_a_distribution_for_every_choice():
    network = CategoricalValues(EgoSpec(), EgoConfig(), num_actions=3, atoms=7)
    found = network(random_view(4, 2))
    assert found.shape == (4, 2, 3, 7)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(4, 2, 3))


def test_the_support_is_even():
    assert even_support(-15.0, 60.0, 4).tolist() == [-15.0, 10.0, 35.0, 60.0]
