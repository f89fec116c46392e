"""Aggregates by the definitions of rliable, against closed forms and SciPy."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgewise.evaluation.performance_profile import performance_profile
from edgewise.studies.scores import aggregate, normalised, optimality_gap

TABLES = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(-1, 2, width=32)
)


def profile(scores, thresholds, **options):
    return performance_profile(scores, thresholds, **options)


def test_a_profile_counts_runs_strictly_above():
    found = profile([[0.2, 0.4], [0.6, 0.8]], [0.0, 0.2, 0.5, 0.8])
    assert found.share.tolist() == [1.0, 0.75, 0.5, 0.0]


@settings(max_examples=10)
@given(TABLES)
def test_a_profile_falls_and_its_area_is_the_mean(scores):
    """The integral of the share above tau is the mean of non-negative scores."""
    clipped = np.clip(scores, 0, 1)
    taus = (np.arange(200) + 0.5) / 200
    found = performance_profile(clipped, taus)
    assert (np.diff(found.share) <= 0).all()
    assert found.share.mean() == pytest.approx(clipped.mean(), abs=1e-2)


def test_bands_hold_the_share_and_have_a_width():
    generator = np.random.default_rng(1)
    found = profile(generator.normal(0.5, 0.2, (10, 5)), np.linspace(0, 1, 21))
    assert (found.low <= found.share + 1e-12).all()
    assert (found.share <= found.high + 1e-12).all()
    assert (np.diff(found.low) <= 1e-12).all()
    assert (np.diff(found.high) <= 1e-12).all()
    # Scores that differ only between environments are all alike within them, which is no certainty.
    apart = profile(np.tile([0.1, 0.9], (8, 1)), [0.5])
    assert apart.share[0] == 0.5
    assert 0.2 < apart.low[0] < 0.4
    assert 0.6 < apart.high[0] < 0.8
    assert np.isnan(profile([[0.1, 0.9], [0.2, 0.8]], [0.5]).low).all()


@pytest.mark.parametrize("scores", [[0.1, 0.2], [[]], [[np.nan]]])
def test_tables_that_are_none_are_refused(scores):
    with pytest.raises(ValueError, match="runs, tasks"):
        profile(scores, [0.5])


@settings(max_examples=4)
@given(TABLES, st.integers(0, 3))
def test_aggregates_equal_scipy(scores, seed):
    other = np.random.default_rng(seed).normal(0.5, 0.5, (3, scores.shape[1]))
    found = aggregate({"a": scores, "b": other})
    measures = {name: rows["a"].estimate for name, rows in found.measures.items()}
    assert measures["IQM"] == pytest.approx(scipy.stats.trim_mean(scores, 0.25, axis=None))
    assert measures["mean"] == pytest.approx(scores.mean())
    assert measures["median"] == pytest.approx(np.median(scores.mean(axis=0)))
    assert measures["optimality gap"] == pytest.approx(1 - np.minimum(scores, 1).mean())
    wins = [
        scipy.stats.mannwhitneyu(scores[:, task], other[:, task]).statistic / (len(scores) * len(other))
        for task in range(scores.shape[1])
    ]
    assert found.improvement["a", "b"].estimate == pytest.approx(np.mean(wins))
    assert found.improvement["b", "a"].estimate == pytest.approx(1 - np.mean(wins))


def test_the_median_is_over_environments_of_means_over_seeds_and_has_no_interval():
    scores = np.array([[0.0, 0.4, 0.9], [0.2, 0.6, 1.1]])
    one = aggregate({"a": scores}).measures["median"]["a"]
    assert one.estimate == pytest.approx(0.5)
    assert not one.has_bounds
    assert aggregate({"a": scores[:1]}).measures["median"]["a"].estimate == pytest.approx(0.4)


def test_scores_are_0_at_the_worst_and_1_at_the_best():
    assert normalised(np.array([-40.0, -4.0, -22.0]), -40, -4).tolist() == [0, 1, 0.5]
    assert normalised(np.array([3.0, 3.0]), 3, 3).tolist() == [0.5, 0.5]
    assert optimality_gap(np.array([[0.5], [3.0]])).estimate == pytest.approx(0.25)
