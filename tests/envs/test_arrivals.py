"""Packets follow their laws, and a draw never takes more of the generator than another."""

import pytest
import torch
from scipy import stats

from edgewise.envs.arrivals import (
    Law,
    flatten_table,
    invert_row,
    poisson_count,
    poisson_table,
    poisson_terms,
)

DRAWS = 40_000


def draws(law, rate, seed=0):
    return law(torch.full((DRAWS,), rate), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_bernoulli_is_zero_or_one_with_the_rate_as_mean(rate):
    got = draws(Law("bernoulli"), rate)
    assert set(got.unique().tolist()) <= {0.0, 1.0}
    assert got.mean().item() == pytest.approx(rate, abs=4 * (rate * (1 - rate) / DRAWS) ** 0.5)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.9, 4.0, 60.0])
def test_poisson_counts_are_those_of_scipy(rate):
    got = draws(Law("poisson", highest_rate=60.0), rate)
    values = torch.arange(int(got.max()) + 1)
    seen = torch.stack([(got <= value).float().mean() for value in values])
    expected = torch.from_numpy(stats.poisson.cdf(values.numpy(), rate)).float()
    assert (seen - expected).abs().max().item() < 1.63 / DRAWS**0.5  # Kolmogorov, one in a hundred


def test_normal_is_rounded_and_never_negative():
    got = draws(Law("normal", deviation=2.0), 1.5)
    assert torch.equal(got, got.round())
    assert got.min().item() == 0.0
    expected = stats.norm.cdf((0.5 - 1.5) / 2.0)
    assert (got == 0).float().mean().item() == pytest.approx(expected, abs=0.01)


def test_fixed_is_the_rate_and_no_view_of_it():
    rate = torch.tensor([0.5, 2.0])
    got = Law("fixed")(rate, None)
    assert torch.equal(got, rate)
    assert got.data_ptr() != rate.data_ptr()


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "normal", "fixed"])
def test_another_rate_in_one_world_shifts_no_other_draw(name):
    law = Law(name, highest_rate=9.0)
    rate = torch.full((6, 4), 0.4)
    other = rate.clone()
    other[0] = 9.0 if name != "bernoulli" else 0.9
    one, two = (law(r, torch.Generator().manual_seed(3)) for r in (rate, other))
    assert torch.equal(one[1:], two[1:])


def test_the_table_leaves_nothing_beyond_its_end():
    for rate in (0.01, 0.7, 5.0, 200.0):
        assert stats.poisson.sf(poisson_terms(rate) - 1, rate) < 2**-24


def test_a_table_gives_the_counts_that_terms_give():
    rates = torch.tensor([0.0, 0.2, 3.0, 8.0], dtype=torch.float64)
    table = poisson_table(rates, terms=poisson_terms(8.0))
    row = torch.randint(4, (5000,))
    uniform = torch.rand(5000, dtype=torch.float64)
    together = invert_row(uniform, row, flat_table=flatten_table(table), terms=table.shape[-1])
    assert torch.equal(together, poisson_count(uniform, rates[row], terms=table.shape[-1]))


def test_a_draw_at_the_edge_of_a_count_belongs_to_the_next():
    """The first count whose cumulative probability exceeds the draw, whichever way it is found."""
    rate = torch.tensor([0.7, 2.0], dtype=torch.float64)
    edge = torch.exp(-rate)
    assert poisson_count(edge, rate, terms=9).tolist() == [1.0, 1.0]
    table = torch.tensor([[0.25, 0.75, 1.0], [0.5, 0.5, 1.0]], dtype=torch.float64)
    flat = flatten_table(table)
    row = torch.tensor([0, 0, 0, 1, 1])
    draw = torch.tensor([0.0, 0.25, 0.75, 0.25, 0.5], dtype=torch.float64)
    assert invert_row(draw, row, flat_table=flat, terms=3).tolist() == [0.0, 1.0, 2.0, 0.0, 2.0]
