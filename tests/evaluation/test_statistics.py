"""Statistics against plain loops and closed forms; how often intervals cover is in test_coverage.py."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from edgewise.evaluation import bounds
from edgewise.evaluation.statistics import (
    Interval,
    difference_of_means,
    improvement_interval,
    interquartile_interval,
    interquartile_mean,
    mean_interval,
    paired_difference,
    paired_ratio,
    probability_of_improvement,
    score_interval,
    stratified_mean_interval,
)

floats = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3))


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


def test_symmetric_samples_have_students_interval_of_a_slightly_higher_level():
    values = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    found = mean_interval(values)
    level = 1 - 0.05 * 5 / 7
    expected = scipy.stats.t.interval(level, 4, loc=0, scale=values.std(ddof=1) / math.sqrt(5))
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_long_tail_has_the_longer_side(sign):
    found = mean_interval(sign * np.array([0.0, 0.1, 0.2, 0.4, 3.0]))
    sides = found.estimate - found.low, found.high - found.estimate
    assert sides[::sign][1] > 1.5 * sides[::sign][0]


@given(st.lists(floats, min_size=3, max_size=12), st.floats(0.1, 10), floats)
def test_intervals_move_and_scale_with_the_samples(values, scale, shift):
    values = np.array(values)
    found = mean_interval(values)
    moved = mean_interval(scale * values + shift)
    if values.std() < 1e-3 or set(values) <= {0.0, 1.0} or set(scale * values + shift) <= {0.0, 1.0}:
        return
    assert found.low < found.estimate < found.high
    expected = [scale * end + shift for end in (found.low, found.estimate, found.high)]
    assert [moved.low, moved.estimate, moved.high] == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_shares_are_exact():
    """The mid-P bound of ten successes in ten: half the probability of ten is the tail, 2 %."""
    found = mean_interval(np.ones(10))
    assert found.high == 1.0
    assert 0.5 * found.low**10 == pytest.approx(0.02)
    assert mean_interval(np.zeros(10)).high == pytest.approx(1 - found.low)


def test_what_cannot_be_told_has_no_bounds_and_says_how_many_samples_there_were():
    for found in (
        mean_interval([3.0]),
        mean_interval([3.0, 4.0]),
        mean_interval([2.0, 2.0, 2.0, 2.0]),
        interquartile_interval([1.0, 2.0, 3.0]),
        interquartile_interval([[1.0, 2.0], [2.0, 3.0]]),
        improvement_interval([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
        paired_ratio([1.0, 2.0, 3.0, 4.0], [1.0, 1.5, 2.0, 2.2]),
        score_interval([1.0, 0.5, 1.0, 1.0]),
        difference_of_means([1.0, 2.0], [1.0, 3.0, 2.0]),
    ):
        assert not found.has_bounds
        assert f"n={found.samples}, no interval" in str(found)
        assert found.ends() == {"low": None, "high": None, "n": found.samples}


def test_nothing_has_a_width_of_zero():
    same = np.tile([0.3, 0.9], (8, 1))
    for found in (
        mean_interval(np.ones(5)),
        score_interval(np.full(20, 0.5)),
        score_interval(np.ones(20)),
        paired_difference(np.ones(30), np.ones(30)),
        improvement_interval(np.arange(5.0), np.arange(5.0) + 10),
        improvement_interval(same, same),
    ):
        assert found.high > found.low
    assert improvement_interval(np.arange(5.0), np.arange(5.0) + 10).high < 0.5
    assert not interquartile_interval(same).has_bounds


def test_an_interval_is_printed_with_the_number_of_its_samples():
    assert str(Interval(0.5, 0.25, 0.75, 12)) == "0.5 [0.25, 0.75] (n=12)"
    assert Interval(120.0, 50.0, math.inf, 40).text(".0f") == "120 [50, inf] (n=40)"
    assert Interval(120.0, 50.0, math.inf, 40).ends() == {"low": 50.0, "high": None, "n": 40}


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


def test_three_runs_against_three_tell_nothing_but_in_several_tasks_they_do():
    low, high = np.arange(3.0), np.arange(3.0) + 10
    assert not improvement_interval(high, low).has_bounds
    assert improvement_interval(np.stack([high] * 4, 1), np.stack([low] * 4, 1)).low > 0.5


@pytest.mark.parametrize("better, worse, count", [(12, 9, 43), (3, 0, 20), (0, 0, 30), (8, 8, 16)])
def test_paired_shares_are_bounded_by_a_score_test(better, worse, count):
    """At each bound the score test is exactly at its limit, with the share of losses fitted numerically."""
    ties = count - better - worse
    for end, side in zip(bounds.sign_bounds(better, worse, count, 0.95), (1, -1), strict=True):
        difference = float(end)

        def unlikely(losses, difference=difference):
            shares = (losses + difference, losses, 1 - 2 * losses - difference)
            return -sum(scipy.special.xlogy(n, p) for n, p in zip((better, worse, ties), shares, strict=True))

        lowest, highest = max(0.0, -difference), (1 - difference) / 2
        losses = scipy.optimize.minimize_scalar(
            unlikely, bounds=(lowest, highest), method="bounded", options={"xatol": 1e-12}
        ).x
        variance = count * (2 * losses + difference - difference**2)
        score = (better - worse - count * difference) / math.sqrt(variance)
        assert score == pytest.approx(side * 1.959964, abs=1e-3)


def test_paired_difference_sees_what_unpaired_spread_hides():
    instances = np.random.default_rng(0).normal(scale=100, size=40)
    better = instances + 1 + 0.1 * np.sin(np.arange(40))
    got = paired_difference(better, instances)
    assert 0.9 < got.low < got.estimate < got.high < 1.1
    unpaired = difference_of_means(better, instances)
    assert unpaired.low < 0 < unpaired.high
    with pytest.raises(ValueError, match="pairs are needed"):
        paired_difference([1.0, 2.0], [1.0])


def test_difference_of_means_is_welchs_where_nothing_is_skewed():
    left, right = np.array([-1.0, 0.0, 1.0, 0.0]), np.array([3.0, 5.0, 7.0])
    theirs = scipy.stats.ttest_ind(left, right, equal_var=False)
    freedom = theirs.df
    level = 1 - 0.05 * (freedom + 1) / (freedom + 3)
    expected = theirs.confidence_interval(level)
    found = difference_of_means(left, right)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.samples == 3


def test_a_ratio_holds_what_the_pairs_do_not_reject():
    generator = np.random.default_rng(0)
    other = generator.uniform(1, 3, 50)
    values = 2 * other + generator.normal(scale=0.1, size=50)
    found = paired_ratio(values, other)
    assert 1.97 < found.low < found.estimate < found.high < 2.03
    strict = 1 - 0.05 * 50 / 52
    for end in (found.low, found.high):
        kept = mean_interval(values - end * other, level=strict)
        assert min(abs(kept.low), abs(kept.high)) < 1e-6
    assert paired_ratio(values, -other) is None
    assert not paired_ratio(values, np.concatenate([other[:25], -other[:25]]) + 0.01).has_bounds


def test_strata_are_compared_within_themselves():
    """Runs that differ only between tasks tell their mean exactly, however far tasks are apart."""
    noise = np.random.default_rng(0).normal(scale=0.01, size=(6, 2))
    found = stratified_mean_interval(noise + np.array([0.0, 100.0]))
    assert found.high - found.low < 0.05
    assert found.estimate == pytest.approx(50, abs=0.02)


@pytest.mark.parametrize(
    "values, message",
    [([], "at least one"), ([1.0, math.nan], "1 of 2 values"), ([[1.0]], r"\[n\] are needed")],
)
def test_bad_samples_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        mean_interval(values)


def test_levels_and_scores_out_of_range_are_refused():
    with pytest.raises(ValueError, match="level"):
        mean_interval([1.0, 2.0, 3.0], level=1.0)
    with pytest.raises(ValueError, match=r"scores in \[0, 1\]"):
        score_interval([0.5, 1.5])
