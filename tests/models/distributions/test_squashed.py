"""Squashed normal actions: a density that integrates to one, and log-probabilities of what is stored."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import AffineTransform, Normal, TanhTransform, TransformedDistribution

from edgewise.models.distributions.squashed import SquashedNormal

locs = st.floats(-1.5, 1.5)
scales = st.floats(0.05, 2.0)


def one(loc, scale, **bounds):
    return SquashedNormal(
        torch.tensor([loc], dtype=torch.float64), torch.tensor([scale], dtype=torch.float64), **bounds
    )


def density(dist, points=200_001):
    """Actions on a grid that is even before squashing, their density, and the width of each cell."""
    u = torch.linspace(-12, 12, points, dtype=torch.float64)
    action = (dist.middle + dist.half * torch.tanh(u)).unsqueeze(-1)
    width = dist.half * (1 - torch.tanh(u) ** 2) * (u[1] - u[0])
    return action, dist.log_prob(action).exp(), width


@given(locs, scales)
def test_density_integrates_to_one(loc, scale):
    _, height, width = density(one(loc, scale, low=-2.0, high=6.0))
    assert abs((height * width).sum() - 1) < 1e-3


@given(locs, scales, st.integers(0, 1000))
def test_equals_torchs_transformed_normal(loc, scale, seed):
    dist = one(loc, scale, low=-2.0, high=6.0)
    base = Normal(dist.loc, dist.scale)
    reference = TransformedDistribution(base, [TanhTransform(), AffineTransform(2.0, 4.0)])
    generator = torch.Generator().manual_seed(seed)
    action = dist.sample((10,), generator)
    expected = reference.log_prob(action).squeeze(-1)
    torch.testing.assert_close(dist.log_prob(action), expected, rtol=1e-6, atol=1e-6)


@given(locs, scales)
def test_entropy_equals_the_integral(loc, scale):
    dist = one(loc, scale, low=0.0, high=1.0)
    _, height, width = density(dist)
    expected = -(torch.special.xlogy(height, height) * width).sum()
    torch.testing.assert_close(dist.entropy(), expected, rtol=0, atol=2e-3)


def test_draws_have_the_median_of_the_mode_and_stay_inside():
    dist = SquashedNormal(torch.full((2,), 0.3), torch.full((2,), 0.7), low=1.0, high=3.0)
    draws = dist.sample((20_000,))
    assert draws.shape == (20_000, 2)
    assert ((draws >= 1) & (draws <= 3)).all()
    torch.testing.assert_close(draws.median(0).values, dist.mode, rtol=0, atol=0.02)


def test_log_prob_of_saturated_actions_is_finite_and_repeats_exactly():
    dist = SquashedNormal(torch.full((4, 1), 20.0), torch.ones(4, 1))
    action = dist.sample()
    assert (action == 1).all()
    assert dist.log_prob(action).isfinite().all()
    assert torch.equal(dist.log_prob(action), dist.log_prob(action.clone()))


def test_draws_with_gradients_score_themselves():
    loc = torch.zeros(5, 3, dtype=torch.float64, requires_grad=True)
    scale = torch.full((5, 3), 0.5, dtype=torch.float64, requires_grad=True)
    dist = SquashedNormal(loc, scale, low=-3.0, high=1.0)
    action, score = dist.rsample_and_log_prob()
    torch.testing.assert_close(score, dist.log_prob(action.detach()))
    (action.sum() + score.sum()).backward()
    assert loc.grad.abs().min() > 0
    assert scale.grad.abs().min() > 0


def test_rows_not_counted_give_the_middle_at_no_cost():
    counted = torch.tensor([True, False])
    dist = SquashedNormal(torch.ones(2, 3), torch.ones(2, 3), low=0.0, high=4.0, counted=counted)
    for action in (dist.sample(), dist.rsample(), dist.mode):
        assert (action[1] == 2).all()
        assert dist.log_prob(action)[1] == 0
    assert dist.entropy()[1] == 0


def test_a_wide_normal_has_less_entropy_than_the_uniform():
    uniform = math.log(2.0)
    assert one(0.0, 1.0).entropy().item() < uniform


def test_bounds_must_be_in_order():
    with pytest.raises(ValueError, match=r"low < high, got low=1\.0 and high=-1\.0"):
        SquashedNormal(torch.zeros(1), torch.ones(1), low=1.0, high=-1.0)
