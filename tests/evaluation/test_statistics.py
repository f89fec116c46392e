"""Intervals against the enumeration of every resample, means and probabilities against plain loops."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from edgewise.evaluation import statistics
from edgewise.evaluation.statistics import (
    bca_interval,
    bootstrap,
    improvement_interval,
    interquartile_mean,
    mean,
    paired_difference,
    percentile_interval,
    probability_of_improvement,
    stratified_interval,
)

RESAMPLES = 200_000
RANK_ERROR = 0.0075
"""By the Dvoretzky-Kiefer-Wolfowitz bound, 200,000 draws miss a rank by more with probability below 1e-9."""

SKEWED = [0.0, 0.3, 0.5, 1.1, 9.0]
floats = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3))


def generator():
    return np.random.default_rng(7)


def every_resample(values):
    """All n**n equally likely resamples."""
    return list(itertools.product(values, repeat=len(values)))


def assert_at_rank(bound, exact, rank):
    """The bound lies between the exact quantiles just below and just above its rank."""
    ordered = np.sort(np.asarray(exact))
    low, high = (np.quantile(ordered, np.clip(rank + side * RANK_ERROR, 0, 1)) for side in (-1, 1))
    assert low - 1e-9 <= bound <= high + 1e-9, (low, bound, high)


def exact_bca_ranks(values, exact, statistic, level):
    """The textbook's ranks, from the exact distribution and a loop of leaving one out."""
    normal = NormalDist()
    estimate = statistic(values)
    below = sum(1.0 if s < estimate - 1e-12 else 0.5 if s < estimate + 1e-12 else 0.0 for s in exact) / len(
        exact
    )
    bias = normal.inv_cdf(below)
    jackknife = [statistic(values[:i] + values[i + 1 :]) for i in range(len(values))]
    center = sum(jackknife) / len(jackknife)
    cubes = sum((center - value) ** 3 for value in jackknife)
    squares = sum((center - value) ** 2 for value in jackknife)
    acceleration = cubes / (6 * squares**1.5)
    ranks = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + normal.inv_cdf(tail)
        ranks.append(normal.cdf(bias + z / (1 - acceleration * z)))
    return ranks


@given(st.lists(floats, min_size=1, max_size=30))
def test_interquartile_mean_is_the_mean_of_the_middle_half(values):
    cut = len(values) // 4
    middle = sorted(values)[cut : len(values) - cut]
    assert float(interquartile_mean(values)) == pytest.approx(sum(middle) / len(middle), abs=1e-9)
    assert float(interquartile_mean(values)) == pytest.approx(scipy.stats.trim_mean(values, 0.25), abs=1e-9)


def test_interquartile_mean_reduces_the_last_axis():
    table = np.random.default_rng(0).normal(size=(3, 4, 9))
    expected = [[interquartile_mean(row) for row in block] for block in table]
    np.testing.assert_allclose(interquartile_mean(table), expected)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("statistic", [mean, interquartile_mean])
def test_percentile_interval_agrees_with_every_resample(statistic, level):
    exact = [float(statistic(np.array(sample))) for sample in every_resample(SKEWED)]
    got = percentile_interval(SKEWED, statistic, generator=generator(), level=level, resamples=RESAMPLES)
    assert got.estimate == pytest.approx(float(statistic(np.array(SKEWED))))
    assert_at_rank(got.low, exact, (1 - level) / 2)
    assert_at_rank(got.high, exact, (1 + level) / 2)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bca_interval_agrees_with_every_resample(level):
    exact = [sum(sample) / len(sample) for sample in every_resample(SKEWED)]
    low, high = exact_bca_ranks(SKEWED, exact, lambda values: sum(values) / len(values), level)
    assert abs(high - (1 + level) / 2) > RANK_ERROR, "the correction must be large enough to be seen"
    got = bca_interval(SKEWED, generator=generator(), level=level, resamples=RESAMPLES)
    assert_at_rank(got.low, exact, low)
    assert_at_rank(got.high, exact, high)


def test_bca_interval_agrees_with_scipy():
    values = np.random.default_rng(3).exponential(size=25)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, method="BCa", n_resamples=50_000, rng=np.random.default_rng(1), vectorized=True
    ).confidence_interval
    ours = bca_interval(values, generator=generator(), resamples=50_000)
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.02 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.02 * width)


def test_stratified_draws_stay_within_their_task():
    scores = [[0.0, 10.0], [1.0, 30.0]]
    support = {}
    for first, second in itertools.product(
        itertools.product([0.0, 1.0], repeat=2), itertools.product([10.0, 30.0], repeat=2)
    ):
        value = (sum(first) + sum(second)) / 4
        support[value] = support.get(value, 0) + 1 / 16
    draws = bootstrap(np.array(scores), mean, generator=generator(), resamples=RESAMPLES)
    values, counts = np.unique(draws, return_counts=True)
    assert set(values) == set(support)
    for value, count in zip(values, counts, strict=True):
        assert count / RESAMPLES == pytest.approx(support[value], abs=RANK_ERROR)


def test_stratified_interval_agrees_with_every_resample():
    scores = np.array([[0.1, 0.7], [0.4, 0.9], [0.9, 0.2]])
    per_task = [list(itertools.product(scores[:, task], repeat=3)) for task in range(2)]
    exact = [float(interquartile_mean(np.array(a + b))) for a, b in itertools.product(*per_task)]
    got = stratified_interval(scores, generator=generator(), resamples=RESAMPLES)
    assert got.estimate == pytest.approx(float(interquartile_mean(scores.reshape(-1))))
    assert_at_rank(got.low, exact, 0.025)
    assert_at_rank(got.high, exact, 0.975)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.randoms(use_true_random=False))
def test_probability_of_improvement_counts_pairs(runs, other_runs, tasks, source):
    scores = [[source.randrange(4) for _ in range(tasks)] for _ in range(runs)]
    other = [[source.randrange(4) for _ in range(tasks)] for _ in range(other_runs)]
    total = 0.0
    for task in range(tasks):
        wins = sum(
            1.0 if a[task] > b[task] else 0.5 if a[task] == b[task] else 0.0 for a in scores for b in other
        )
        total += wins / (runs * other_runs)
    got = probability_of_improvement(scores, other)
    assert got == pytest.approx(total / tasks)
    assert got + probability_of_improvement(other, scores) == pytest.approx(1.0)


def test_probability_of_improvement_is_the_mann_whitney_statistic():
    left, right = np.random.default_rng(2).normal(size=(2, 12))
    expected = scipy.stats.mannwhitneyu(left, right[:9]).statistic / (12 * 9)
    assert probability_of_improvement(left, right[:9]) == pytest.approx(expected)


def test_improvement_interval_agrees_with_every_resample():
    left, right = [0.2, 0.5, 0.9], [0.1, 0.6, 0.4]
    exact = [
        probability_of_improvement(a, b)
        for a, b in itertools.product(every_resample(left), every_resample(right))
    ]
    got = improvement_interval(left, right, generator=generator(), level=0.8, resamples=RESAMPLES)
    assert got.estimate == probability_of_improvement(left, right)
    assert_at_rank(got.low, exact, 0.1)
    assert_at_rank(got.high, exact, 0.9)


def test_paired_difference_sees_what_unpaired_spread_hides():
    instances = np.random.default_rng(0).normal(scale=100, size=40)
    got = paired_difference(instances + 1 + 0.1 * np.sin(np.arange(40)), instances, generator=generator())
    assert 0.9 < got.low < got.estimate < got.high < 1.1
    with pytest.raises(ValueError, match="pairs are needed"):
        paired_difference([1.0, 2.0], [1.0], generator=generator())


@given(st.lists(floats, min_size=2, max_size=12), st.sampled_from([percentile_interval, bca_interval]))
def test_intervals_hold_their_place(values, interval):
    got = interval(values, generator=generator(), resamples=500)
    assert min(values) - 1e-9 <= got.low <= got.high <= max(values) + 1e-9
    shifted = interval([value + 8 for value in values], generator=generator(), resamples=500)
    assert shifted.estimate == pytest.approx(got.estimate + 8)
    assert got == interval(values, generator=generator(), resamples=500)


def test_intervals_cover_the_truth_as_often_as_they_say():
    source = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        got = bca_interval(source.normal(size=30), generator=source, resamples=1_000)
        hits += got.low <= 0.0 <= got.high
    # 95 % nominal; for 30 normal samples the bootstrap's own shortfall is about 1.5 points
    assert 0.90 <= hits / 400 <= 0.98


def test_one_sample_has_no_spread_and_equal_samples_have_none():
    for interval in (percentile_interval, bca_interval, stratified_interval):
        alone = interval([3.0], generator=generator())
        assert alone.estimate == 3.0
        assert math.isnan(alone.low)
        assert math.isnan(alone.high)
        equal = interval([2.0, 2.0, 2.0], generator=generator())
        assert (equal.low, equal.estimate, equal.high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    "values, message",
    [([], "at least one"), ([1.0, math.nan], "1 of 2 values"), ([[1.0]], r"\[n\] are needed")],
)
def test_bad_samples_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        bca_interval(values, generator=generator())


def test_chunks_do_not_change_what_is_drawn(monkeypatch):
    values = np.random.default_rng(0).normal(size=50)
    whole = bca_interval(values, generator=generator(), resamples=999)
    monkeypatch.setattr("edgewise.evaluation.statistics._CHUNK", 1_000)
    assert bca_interval(values, generator=generator(), resamples=999) == whole


@pytest.mark.parametrize("resamples", [1, 7, 8, 1001])
def test_there_are_as_many_resamples_as_asked_for(monkeypatch, resamples):
    monkeypatch.setattr(statistics, "_CHUNK", 32)
    found = statistics.bootstrap(
        np.ones((4, 1)), statistics.mean, generator=np.random.default_rng(0), resamples=resamples
    )
    assert found.shape == (resamples,)
