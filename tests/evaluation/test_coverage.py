"""Intervals cover the truth as often as they say, by simulation; shares by the sum over every outcome."""

import numpy as np
import pytest
import scipy.stats
from benchmarks.coverage import COUNTS, cases, measure

from edgewise.evaluation.bounds import share_bounds

CASES = list(cases())
REPEATS = 3_000


def slack(repeats):
    """Four standard errors of a simulated share of 95 %."""
    return 4 * np.sqrt(0.95 * 0.05 / repeats)


@pytest.mark.parametrize("count", [count for count in COUNTS if count < 100])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.interval}, {case.samples}")
def test_coverage_is_what_the_interval_says(case, count):
    """93 to 98 % within chance; counts are discrete, so that only too little coverage is a fault for them."""
    found = measure(case, count, repeats=REPEATS)
    if found.refused > 0.5:
        assert count <= 5
        return
    repeats = max(REPEATS // case.slow, 100) * (1 - found.refused)
    assert found.covered >= 0.93 - slack(repeats)
    assert found.covered <= (1.0 if case.discrete else 0.98 + slack(repeats))
    assert found.narrowest > 0


@pytest.mark.parametrize("count", [3, 5, 10, 30, 100, 1000])
def test_no_share_is_covered_much_less_than_said(count):
    """Exact, since the probability of every number of successes is known."""
    hits = np.arange(count + 1)
    low, high = share_bounds(hits, count, 0.95)
    shares = np.linspace(0.0005, 0.9995, 999)
    likely = scipy.stats.binom.pmf(hits[:, None], count, shares)
    covered = (likely * ((low[:, None] <= shares) & (shares <= high[:, None]))).sum(0)
    assert covered.min() >= 0.925
    assert covered.mean() >= 0.955
    near_one = covered[shares > 0.9]
    assert near_one.min() >= 0.93
    assert near_one.mean() <= (0.99 if count < 100 else 0.972)


def test_a_bootstrap_would_fail_here():
    """The simulation notices intervals that cover too little, such as percentiles of three samples."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(2_000, 3))
    draws = values[np.arange(2_000)[:, None, None], generator.integers(0, 3, (2_000, 500, 3))].mean(-1)
    low, high = np.quantile(draws, (0.025, 0.975), axis=1)
    assert ((low <= 0) & (high >= 0)).mean() < 0.8
