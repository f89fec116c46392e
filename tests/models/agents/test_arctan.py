"""Actions squashed by the arc tangent: the density of what is drawn, by a change of variables on a grid."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.models.agents.arctan import ArctanNormal, log_slope, smooth_action, squash


def density_on_a_grid(loc, scale, action):
    """The density at `action` from the distribution function, which knows nothing of slopes."""
    step = 1e-6

    def below(a):
        return torch.distributions.Normal(loc, scale).cdf((a * math.pi / 2).tan())

    return (below(action + step) - below(action - step)) / (2 * step)


@given(loc=st.floats(-2, 2), log_scale=st.floats(-2, 1), seed=st.integers(0, 99))
def test_log_probabilities_are_those_of_the_distribution_function(loc, log_scale, seed):
    mean, spread = (torch.full((40, 1), value, dtype=torch.float64) for value in (loc, log_scale))
    action, log_prob = ArctanNormal(mean, spread).rsample_and_log_prob(torch.Generator().manual_seed(seed))
    inside = (action.abs() < 0.95).squeeze(-1)
    wanted = density_on_a_grid(mean, spread.exp(), action).log().squeeze(-1)
    torch.testing.assert_close(log_prob[inside], wanted[inside], atol=1e-4, rtol=1e-4)


def test_the_formula_of_tanh_would_show():
    """The planted fault: log(1 - a²), the correction of another squash."""
    mean = torch.zeros(200, 1, dtype=torch.float64)
    action, log_prob = ArctanNormal(mean, mean).rsample_and_log_prob()
    z = (action * math.pi / 2).tan()
    wrong = torch.distributions.Normal(0.0, 1.0).log_prob(z) - (1 - action.square() + 1e-6).log()
    wanted = density_on_a_grid(mean, mean.exp(), action).log()
    assert (log_prob.unsqueeze(-1) - wanted).abs().quantile(0.9) < 1e-4
    assert (wrong - wanted).abs().mean() > 0.1


def test_dimensions_add_up_and_the_mode_is_the_squashed_mean():
    loc, log_scale = torch.randn(5, 2), torch.zeros(5, 2)
    both = ArctanNormal(loc, log_scale)
    action, log_prob = both.rsample_and_log_prob(torch.Generator().manual_seed(0))
    z = (action.double() * math.pi / 2).tan()
    normal = torch.distributions.Normal(loc.double(), 1.0).log_prob(z)
    torch.testing.assert_close(log_prob.double(), (normal - log_slope(z)).sum(-1), atol=1e-3, rtol=1e-3)
    assert torch.equal(both.mode, squash(loc))


def test_slopes_are_derivatives_and_actions_stay_inside():
    z = torch.linspace(-50, 50, 101, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(squash(z).sum(), z)
    torch.testing.assert_close(log_slope(z).exp(), slope)
    assert squash(torch.tensor([-1e30, 1e30])).abs().le(1).all()


def test_smoothing_stays_near_and_within_bounds():
    action = torch.tensor([-1.0, 0.0, 0.3, 1.0]).expand(5000, 4)
    near = smooth_action(action, 0.1)
    assert near.abs().max() <= 1
    assert (near - action).abs().max() <= 0.2 + 1e-6
    assert (near - action)[:, 1].std() == pytest.approx(0.096, abs=0.004)  # 0.1 of a normal cut off at two
    assert torch.equal(smooth_action(action, 0.0), action)
