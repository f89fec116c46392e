"""The terms of PPO: values worked by hand, gradients where they must vanish, and the signs that go wrong."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Categorical, kl_divergence

from edgewise.objectives.policy_gradient import (
    approximate_kl,
    clip_fraction,
    clipped_surrogate,
    clipped_value_error,
    huber,
    squared_error,
    value_error,
)

numbers = st.floats(-30, 30, allow_nan=False)


@pytest.mark.parametrize(
    "ratio, advantage, loss, slope",
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.2),
        (1.5, 2.0, -2.4, 0.0),  # a good action, already likelier by more than the clip: nothing to gain
        (0.5, 2.0, -1.0, -1.0),  # a good action that became rarer: pulled back in full
        (0.5, -2.0, 1.6, 0.0),  # a bad action, already rarer by more than the clip
        (1.5, -2.0, 3.0, 3.0),  # a bad action that became likelier: pushed back in full
    ],
)
def test_the_surrogate_and_its_slope(ratio, advantage, loss, slope):
    log_ratio = torch.tensor([ratio], dtype=torch.float64).log().requires_grad_()
    found = clipped_surrogate(log_ratio, torch.tensor([advantage], dtype=torch.float64), clip=0.2)
    found.sum().backward()
    assert found.item() == pytest.approx(loss)
    assert log_ratio.grad.item() == pytest.approx(slope)


def test_the_share_of_clipped_ratios():
    log_ratio = torch.tensor([0.5, 0.79, 0.81, 1.0, 1.19, 1.21, 3.0]).log()
    assert clip_fraction(log_ratio, clip=0.2).tolist() == [1, 1, 0, 0, 0, 1, 1]


def test_the_approximate_divergence_is_right_on_average_and_never_negative():
    old, new = (Categorical(logits=torch.randn(5, dtype=torch.float64)) for _ in range(2))
    every = torch.arange(5)
    terms = approximate_kl(new.log_prob(every) - old.log_prob(every))
    assert (terms >= 0).all()
    torch.testing.assert_close((old.probs * terms).sum(), kl_divergence(old, new))
    assert approximate_kl(torch.zeros(3)).tolist() == [0.0] * 3


@given(numbers, numbers, st.floats(0.1, 20))
def test_huber_is_even_and_meets_the_parabola(prediction, target, delta):
    """The fault to keep out: testing e instead of |e| makes every error below -delta free."""
    one, other = torch.tensor(prediction, dtype=torch.float64), torch.tensor(target, dtype=torch.float64)
    found, mirrored = huber(one, other, delta=delta), huber(other, one, delta=delta)
    error = abs(prediction - target)
    expected = error**2 / 2 if error <= delta else delta * (error - delta / 2)
    assert found.item() == pytest.approx(expected)
    assert mirrored.item() == pytest.approx(expected)
    reference = torch.nn.functional.huber_loss(one, other, delta=delta)
    torch.testing.assert_close(found, reference)


@pytest.mark.parametrize("error", [-20.0, 20.0])
def test_large_errors_pull_with_the_same_force_either_way(error):
    prediction = torch.tensor(error, requires_grad=True)
    huber(prediction, torch.tensor(0.0), delta=10.0).backward()
    assert prediction.grad.item() == (10.0 if error > 0 else -10.0)
    assert huber(torch.tensor(error), torch.tensor(0.0), delta=10.0).item() == 150.0


@given(numbers, numbers, numbers, st.floats(0.01, 5))
def test_the_clipped_value_error_is_the_worse_of_two(prediction, target, old, clip):
    value, goal, before = (torch.tensor(number, dtype=torch.float64) for number in (prediction, target, old))
    held = min(max(prediction, old - clip), old + clip)
    expected = max((prediction - target) ** 2, (held - target) ** 2) / 2
    assert clipped_value_error(value, goal, old=before, clip=clip).item() == pytest.approx(expected)


def test_a_value_error_is_squared_unless_a_delta_is_given():
    prediction, target = torch.tensor([0.0, 3.0]), torch.tensor([1.0, 0.0])
    assert torch.equal(value_error(prediction, target), squared_error(prediction, target))
    assert value_error(prediction, target, delta=1.0).tolist() == [0.5, 2.5]


def test_the_surrogate_and_its_gradient_are_those_of_the_minimum():
    """Bit for bit, at the borders of the range and where the advantage is zero as well."""
    generator = torch.Generator().manual_seed(0)
    log_ratio = torch.cat((0.3 * torch.randn(500, generator=generator), torch.zeros(5)))
    advantage = torch.cat((torch.randn(495, generator=generator), torch.zeros(10)))

    def minimum(log_ratio):
        ratio = log_ratio.exp()
        return -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)

    results = []
    for loss in (minimum, lambda each: clipped_surrogate(each, advantage, clip=0.2)):
        leaf = log_ratio.clone().requires_grad_()
        value = loss(leaf)
        results.append((value.detach(), *torch.autograd.grad(value.sum(), leaf)))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
