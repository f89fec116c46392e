"""Noisy layers: the factored row is the noisy matrix, every row has its own noise, and none is silence."""

import torch
from tests.models.views import random_view

from edgewise.models.agents.categorical import CategoricalQNetwork, even_support
from edgewise.models.agents.ego import EgoSpec, make_ego_encoder
from edgewise.models.agents.noisy import NoisyLinear
from edgewise.models.config import EgoConfig


def test_a_row_is_its_own_noisy_matrix():
    layer, x = NoisyLinear(4, 3), torch.randn(5, 4)
    torch.nn.init.normal_(layer.weight_sigma)
    p, q = layer.sample_noise(x, shared=False)
    found = layer(x, (p, q))
    for row in range(5):
        weight = layer.weight + layer.weight_sigma * torch.outer(q[row], p[row])
        bias = layer.bias + layer.bias_sigma * q[row]
        torch.testing.assert_close(found[row], weight @ x[row] + bias)
        torch.testing.assert_close(layer(x, (p[row], q[row]))[row], found[row])


def test_noise_has_the_moments_of_the_signed_root_of_a_normal():
    p, q = NoisyLinear(8, 6).sample_noise(torch.zeros(20_000, 8), shared=False)
    assert p.shape == (20_000, 8)
    assert q.shape == (20_000, 6)
    for factor in (p, q):
        assert factor.mean().abs() < 0.02
        assert (factor.square().mean() - (2 / torch.pi) ** 0.5).abs() < 0.02  # E|z| of a standard normal


def test_without_noise_the_mean_decides():
    layer, x = NoisyLinear(4, 3), torch.randn(5, 4)
    torch.testing.assert_close(layer(x), x @ layer.weight.T + layer.bias)


def test_the_network_draws_anew_at_every_call_and_for_every_row_where_asked():
    """The planted fault: noise that is drawn once and kept would give equal calls."""
    network = CategoricalQNetwork(make_ego_encoder(EgoSpec(), EgoConfig()), hidden=128, num_actions=3)
    view = random_view(1).expand(4)
    for noise, alike in (("rows", False), ("shared", True)):
        first, second = network(view, noise), network(view, noise)
        assert not torch.allclose(first, second)
        assert torch.allclose(first[0], first[1], atol=1e-5) == alike
    assert torch.equal(network(view, "none"), network(view, "none"))


def test_its_logits_are_one_distribution_for_every_choice():
    """The mean advantage is taken out, so that the state's stream is the mean of all choices."""
    network = CategoricalQNetwork(
        make_ego_encoder(EgoSpec(), EgoConfig()), hidden=128, num_actions=3, atoms=7
    )
    view = random_view(4, 2)
    found = network(view, "none")
    assert found.shape == (4, 2, 3, 7)
    state = network.state(network.features(view), "none")
    torch.testing.assert_close(found.mean(-2), state, atol=1e-5, rtol=1e-5)


def test_the_support_is_even():
    assert even_support(-15.0, 60.0, 4).tolist() == [-15.0, 10.0, 35.0, 60.0]
