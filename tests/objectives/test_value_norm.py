"""Running statistics of returns: right from the first batch on, and exactly invertible."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.objectives.value_norm import ValueNorm

seeds = st.integers(0, 2**31)


def batches(seed, count):
    generator = torch.Generator().manual_seed(seed)
    return [5 * step + (1 + step) * torch.randn(6, 2, generator=generator) for step in range(count)]


@given(seeds, st.integers(1, 6), st.sampled_from([0.0, 0.5, 0.9, 0.99999]))
def test_statistics_are_the_weighted_ones_of_all_batches(seed, count, decay):
    """Batch k of n weighs decay^(n-1-k), weights made to sum to one: mean and variance of that mixture."""
    norm, seen = ValueNorm(decay), batches(seed, count)
    for batch in seen:
        norm.update(batch)
    weight = torch.tensor([decay ** (count - 1 - k) for k in range(count)], dtype=torch.float64)
    weight /= weight.sum()
    stacked = torch.stack(seen).double()
    mean = (weight * stacked.mean((1, 2))).sum()
    variance = (weight * (stacked - mean).square().mean((1, 2))).sum()
    torch.testing.assert_close(norm.mean.double(), mean, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(norm.variance.double(), variance, rtol=1e-3, atol=1e-3)


@given(seeds, st.integers(0, 4))
def test_denormalise_undoes_normalise(seed, count):
    norm = ValueNorm(0.9)
    for batch in batches(seed, count):
        norm.update(batch)
    values = torch.randn(3, 4, 1)
    torch.testing.assert_close(norm.denormalise(norm.normalise(values)), values, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(norm.normalise(norm.denormalise(values)), values, rtol=1e-5, atol=1e-5)


def test_the_first_batch_is_not_shrunk_by_the_start_at_zero():
    """Returns of -50 ± 20 with decay .99999: biased averages would be 1e5 times too small."""
    norm = ValueNorm(0.99999)
    returns = -50 + 20 * torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    norm.update(returns)
    torch.testing.assert_close(norm.mean, returns.mean(), rtol=1e-4, atol=0)
    torch.testing.assert_close(norm.scale, returns.std(), rtol=1e-3, atol=0)
    scaled = norm.normalise(returns)
    assert scaled.mean().abs() < 1e-3
    assert (scaled.std() - 1).abs() < 1e-3


def test_before_any_batch_nothing_changes():
    values = torch.randn(5)
    assert torch.equal(ValueNorm().normalise(values), values)


def test_only_active_agents_count_and_a_batch_without_any_changes_nothing():
    norm, other = ValueNorm(0.9), ValueNorm(0.9)
    returns, active = torch.randn(4, 3), torch.tensor([[True, False, True]] * 4)
    norm.update(returns.masked_fill(~active, torch.nan), active)
    other.update(returns[active])
    torch.testing.assert_close(norm.state_dict(), other.state_dict())
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    norm.update(torch.full((4, 3), torch.nan), torch.zeros(4, 3, dtype=torch.bool))
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())


def test_a_small_spread_about_a_large_mean_survives_single_precision():
    """E[x²] - E[x]² in float32 would lose it."""
    norm = ValueNorm(0.9)
    for _ in range(20):
        norm.update(torch.tensor([9_999.0, 10_001.0]))
    assert norm.scale.item() == pytest.approx(1.0, rel=1e-3)


def test_equal_returns_do_not_divide_by_zero():
    norm = ValueNorm()
    norm.update(torch.full((4,), 3.0))
    assert norm.normalise(torch.tensor([3.0, 4.0])).isfinite().all()


def test_a_decay_of_one_is_refused():
    with pytest.raises(ValueError, match=r"\[0, 1\), got 1"):
        ValueNorm(1)
