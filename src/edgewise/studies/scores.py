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

from edgewise.evaluation.bounds import Values
from edgewise.evaluation.performance_profile import Profile, performance_profile
from edgewise.evaluation.statistics import (
    Interval,
    improvement_interval,
    interquartile_interval,
    stratified_mean_interval,
)

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
    measures: dict[str, dict[str, Interval]] = {
        "IQM": {name: interquartile_interval(table) for name, table in scores.items()},
        "median": {name: _median(table) for name, table in scores.items()},
        "mean": {name: stratified_mean_interval(table) for name, table in scores.items()},
        "optimality gap": {name: optimality_gap(table) for name, table in scores.items()},
    }
    highest = max([1.0, *(float(table.max()) for table in scores.values())])
    thresholds = np.linspace(min([0.0, *(float(t.min()) for t in scores.values())]), highest, THRESHOLDS)
    profiles = {name: performance_profile(table, thresholds) for name, table in scores.items()}
    improvement = {
        (left, right): improvement_interval(scores[left], scores[right])
        for left, right in permutations(scores, 2)
    }
    return Aggregates(measures, profiles, improvement)


def optimality_gap(table: Values) -> Interval:
    """Compute how far scores `[runs, environments]` are below 1 on average; scores above 1 count as 1."""
    return stratified_mean_interval(1.0 - np.minimum(table, 1.0))


def _median(table: Values) -> Interval:
    """Return the median over environments of the mean over runs; no interval of it is known to cover."""
    return Interval(float(np.median(table.mean(axis=0))), np.nan, np.nan, len(table))
