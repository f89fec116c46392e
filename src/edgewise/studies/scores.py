"""Aggregate the results of a grid over environments and seeds, by the definitions of rliable.

Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(https://arxiv.org/abs/2108.13264). Scores are values of environments on one scale, 0 for the worst and 1 for
the best of a range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from edgewise.evaluation.performance_profile import Profile, performance_profile
from edgewise.evaluation.statistics import (
    Interval,
    Statistic,
    Values,
    improvement_interval,
    interquartile_mean,
    mean,
    stratified_interval,
)

RESAMPLES = 2_000
THRESHOLDS = 101


@dataclass(frozen=True)
class Aggregates:
    """Statistics over all environments and seeds.

    Args:
        measures: such as `IQM`, to algorithm, to its value with a 95 % interval.
        profiles: algorithm to its performance profile.
        improvement: pairs of algorithms to the probability that a run of the first beats one of the second.
    """

    measures: dict[str, dict[str, Interval]]
    profiles: dict[str, Profile]
    improvement: dict[tuple[str, str], Interval]


def normalised(values: Values, worst: float, best: float) -> Values:
    """Return values as scores: 0 at `worst`, 1 at `best`, which may be the lower; 0.5 if both are equal.

    Example:
        >>> normalised(np.array([10.0, 5.0]), 10.0, 0.0).tolist()
        [0.0, 0.5]
    """
    if best == worst:
        return np.full_like(values, 0.5)
    return (values - worst) / (best - worst)


def aggregate(scores: Mapping[str, Values]) -> Aggregates:
    """Aggregate scores `[runs, environments]` of each algorithm; the numbers of runs may differ."""

    def interval(table: Values, statistic: Statistic) -> Interval:
        generator = np.random.default_rng(0)
        return stratified_interval(table, statistic, generator=generator, resamples=RESAMPLES)

    measures: dict[str, dict[str, Interval]] = {
        "IQM": {name: interval(table, interquartile_mean) for name, table in scores.items()},
        "median": {name: interval(table, _median_over(table)) for name, table in scores.items()},
        "mean": {name: interval(table, mean) for name, table in scores.items()},
        "optimality gap": {name: interval(table, optimality_gap) for name, table in scores.items()},
    }
    highest = max([1.0, *(float(table.max()) for table in scores.values())])
    thresholds = np.linspace(min([0.0, *(float(t.min()) for t in scores.values())]), highest, THRESHOLDS)
    profiles = {
        name: performance_profile(table, thresholds, generator=np.random.default_rng(0), resamples=RESAMPLES)
        for name, table in scores.items()
    }
    improvement = {
        (left, right): improvement_interval(
            scores[left], scores[right], generator=np.random.default_rng(0), resamples=RESAMPLES
        )
        for left, right in permutations(scores, 2)
    }
    return Aggregates(measures, profiles, improvement)


def optimality_gap(values: Values) -> Values:
    """Compute how far scores are below 1 on average over the last axis; scores above 1 count as 1."""
    return 1.0 - np.minimum(values, 1.0).mean(axis=-1)


def _median_over(table: Values) -> Statistic:
    """Return the median over environments of the mean over runs, for flat tables of this shape."""

    def median(flat: Values) -> Values:
        shaped = flat.reshape(*flat.shape[:-1], *table.shape)
        return np.median(shaped.mean(axis=-2), axis=-1)

    return median
