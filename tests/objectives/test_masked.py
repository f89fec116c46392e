"""Statistics over what counts equal those of the entries picked out, whatever the others hold."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.objectives.masked import (
    explained_variance,
    masked_mean,
    standardise,
    variance_of_all,
)


@st.composite
def masked_values(draw):
    count = draw(st.integers(2, 20))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    values = torch.randn(count, generator=generator, dtype=torch.float64)
    mask = torch.rand(count, generator=generator) < 0.6
    mask[:2] = True
    return values, mask


@given(masked_values())
def test_what_does_not_count_may_be_nan(case):
    values, mask = case
    picked, values = values[mask], values.masked_fill(~mask, torch.nan)
    torch.testing.assert_close(masked_mean(values, mask), picked.mean())
    torch.testing.assert_close(variance_of_all(values, mask, correction=1), picked.var())
    scaled = standardise(values, mask)
    torch.testing.assert_close(scaled[mask], (picked - picked.mean()) / picked.std())
    assert (scaled[~mask] == 0).all()


@given(masked_values())
def test_without_a_mask_all_count(case):
    values, mask = case
    everything = torch.ones_like(mask)
    for statistic in (masked_mean, variance_of_all, standardise):
        torch.testing.assert_close(statistic(values), statistic(values, everything))


def test_nothing_that_counts_gives_zero_and_no_nan():
    nothing = torch.zeros(3, dtype=torch.bool)
    assert masked_mean(torch.full((3,), torch.nan), nothing) == 0
    assert standardise(torch.randn(3), nothing).tolist() == [0, 0, 0]


def test_equal_values_are_not_blown_up():
    assert standardise(torch.full((4,), 7.0)).tolist() == [0.0] * 4


def test_explained_variance_of_known_predictions():
    target = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert explained_variance(target, target) == 1
    assert explained_variance(target + 5, target) == 1
    assert explained_variance(torch.full((4,), 2.5), target) == 0
    assert explained_variance(-target, target) == pytest.approx(-3)
    mask = torch.tensor([True, True, True, False])
    assert explained_variance(torch.tensor([1.0, 2.0, 3.0, 99.0]), target, mask) == 1


def test_what_is_explained_of_a_target_that_does_not_vary_is_finite():
    found = explained_variance(torch.tensor([-50.0, 50.0]), torch.zeros(2))
    assert found.isfinite()
    assert found < 0
