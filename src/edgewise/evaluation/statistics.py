"""Statistics of few runs with intervals: means, shares, interquartile means, probability of improvement.

Aggregates are those of "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(https://arxiv.org/abs/2108.13264). Their bootstrap intervals cover far less than they say with the three to
ten runs that are usual, so none is used: see `bounds` for the methods. An interval says from how many samples
it is, has never a width of zero, and has no bounds where the samples are too few to tell any.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edgewise.evaluation import bounds
from edgewise.evaluation.bounds import Bounds, Values

Statistic = Callable[[Values], Values]
"""A function that reduces the last axis, `[..., n]` to `[...]`."""

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Args:
        estimate: the value itself.
        low: lower bound; NaN if the samples cannot tell it.
        high: upper bound; NaN if the samples cannot tell it.
        samples: number of episodes, runs or pairs of games that it is from.
        level: confidence level.
    """

    estimate: float
    low: float
    high: float
    samples: int
    level: float = LEVEL

    @property
    def has_bounds(self) -> bool:
        """Whether the samples tell an interval; one of its ends may be infinite."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def ends(self) -> dict[str, float | int | None]:
        """Return `low`, `high` and `n` as plain values; None for a bound that is not known or infinite."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return {"low": low, "high": high, "n": self.samples}

    def text(self, style: str = ".4g") -> str:
        """Format the estimate, its bounds and the number of samples; numbers by a format specification."""
        if not self.has_bounds:
            return f"{self.estimate:{style}} (n={self.samples}, no interval)"
        return f"{self.estimate:{style}} [{self.low:{style}}, {self.high:{style}}] (n={self.samples})"

    def __str__(self) -> str:
        return self.text()


def mean(values: ArrayLike) -> Values:
    """Compute the mean over the last axis, `[..., n]` to `[...]`."""
    return np.asarray(values, dtype=np.float64).mean(axis=-1)


def interquartile_mean(values: ArrayLike) -> Values:
    """Compute the mean of the middle half over the last axis, `[..., n]` to `[...]`.

    A quarter of the samples, rounded down, is dropped at each end.

    Example:
        >>> float(interquartile_mean([0.0, 4.0, 6.0, 1000.0]))
        5.0
    """
    array = np.asarray(values, dtype=np.float64)
    count = array.shape[-1]
    cut = count // 4
    if cut == 0:
        return array.mean(axis=-1)
    return np.partition(array, (cut, count - cut - 1), axis=-1)[..., cut : count - cut].mean(axis=-1)


def mean_interval(values: ArrayLike, *, share: bool = True, level: float = LEVEL) -> Interval:
    """Compute the mean of samples `[n]` with its interval.

    Samples that are all 0 or 1 are a share, whose interval is exact for any number of them. Others need three
    samples that are not all equal.

    Args:
        values: samples.
        share: whether samples that are all 0 or 1 are known to have no other values.
        level: confidence level, in (0, 1).

    Example:
        >>> str(mean_interval([0.1, 0.4, 0.4, 0.6, 0.9]))
        '0.48 [0.1065, 0.9437] (n=5)'
        >>> str(mean_interval([1.0] * 100))
        '1 [0.9683, 1] (n=100)'
        >>> str(mean_interval([3.0, 5.0]))
        '4 (n=2, no interval)'
    """
    samples = _samples(values, level)
    found = _share(samples, level) if share and is_share(samples) else bounds.mean_bounds(samples, level)
    return _interval(samples.mean(), found, len(samples), level)


def score_interval(scores: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Compute the mean of scores `[n]` in [0, 1] with its interval, where 0.5 is a tie.

    A score between two of 0, 0.5 and 1 counts in parts as both. The interval is Tango's for paired shares.

    Example:
        >>> str(score_interval([1.0, 1.0, 0.5, 1.0, 1.0]))
        '0.9 [0.509, 0.9934] (n=5)'
    """
    samples = _samples(scores, level)
    if samples.min() < 0 or samples.max() > 1:
        raise ValueError(f"scores in [0, 1] are needed, got {samples.min():g} to {samples.max():g}")
    won, lost = (np.maximum(side * (2 * samples - 1), 0).sum() for side in (1, -1))
    found = bounds.score_bounds(won, lost, len(samples), level)
    return _interval(samples.mean(), found, len(samples), level)


def stratified_mean_interval(scores: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Compute the mean of all scores `[runs, tasks]` with its interval over runs, within each task."""
    table = _table(scores, "scores", level)
    if table.shape[1] == 1:
        return mean_interval(table[:, 0], level=level)
    estimate = table.mean()
    found = bounds.strata_bounds(estimate, list(table.T / table.shape[1]), level)
    return _interval(estimate, found, len(table), level)


def interquartile_interval(scores: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Compute the interquartile mean of all scores `[runs, tasks]` with its interval over runs.

    It needs three runs of each task and four scores in all: fewer have no quarter to drop.
    """
    table = _table(scores, "scores", level)
    found = bounds.interquartile_bounds(table, level)
    return _interval(interquartile_mean(table.reshape(-1)), found, len(table), level)


def probability_of_improvement(scores: ArrayLike, other: ArrayLike) -> float:
    """Compute how often a run of the first beats a run of the second on the same task; ties count half.

    Args:
        scores: `[runs, tasks]`, or `[runs]` for one task.
        other: `[other runs, tasks]`; the number of runs may differ.

    Example:
        >>> probability_of_improvement([1.0, 3.0], [0.0, 2.0])
        0.75
    """
    left, right = _pair(scores, other)
    difference = left[:, None, :] - right[None, :, :]
    return float((0.5 + 0.5 * np.sign(difference)).mean())


def improvement_interval(scores: ArrayLike, other: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Compute the probability of improvement with its interval over the runs of both sides.

    There are no bounds where even runs that never overlap would be likelier than `1 - level` among equals, as
    with three runs against three.
    """
    left, right = _pair(scores, other, level)
    runs, others, tasks = len(left), len(right), left.shape[1]
    estimate = probability_of_improvement(left, right)
    samples = min(runs, others)
    if 2 / math.comb(runs + others, runs) ** tasks > 1 - level:
        return Interval(estimate, np.nan, np.nan, samples, level)
    found = bounds.improvement_bounds(np.asarray(estimate), runs, others, level, tasks=tasks)
    return _interval(estimate, found, samples, level)


def paired_difference(values: ArrayLike, other: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Compute the mean of `values - other` over pairs `[n]` (the same instances), with its interval."""
    left, right = np.asarray(values, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(f"pairs are needed, got {left.shape} and {right.shape} values")
    samples = _samples(left - right, level)
    if is_share(left) and is_share(right):
        found = bounds.sign_bounds((samples > 0).sum(), (samples < 0).sum(), len(samples), level)
    else:
        found = bounds.mean_bounds(samples, level)
    return _interval(samples.mean(), found, len(samples), level)


def difference_of_means(values: ArrayLike, other: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Compute the difference of the means of `[n]` and `[m]` with Welch's interval; they are not paired."""
    left, right = _samples(values, level), _samples(other, level)
    found = bounds.difference_bounds(left, right, level)
    return _interval(left.mean() - right.mean(), found, min(len(left), len(right)), level)


def paired_ratio(values: ArrayLike, other: ArrayLike, *, level: float = LEVEL) -> Interval | None:
    """Compute the mean of `values` over the mean of `other`, with its interval over pairs `[n]`.

    Returns:
        The ratio; None unless the mean of `other` is above zero.
    """
    left, right = _samples(values, level), _samples(other, level)
    if right.mean() <= 0:
        return None
    found = bounds.ratio_bounds(left, right, level)
    return _interval(left.mean() / right.mean(), found, len(left), level)


def is_share(values: Values) -> bool:
    """Return whether all samples are 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def _share(samples: Values, level: float) -> Bounds:
    return bounds.share_bounds(samples.sum(), len(samples), level)


def _interval(estimate: float | Values, ends: Bounds, samples: int, level: float) -> Interval:
    return Interval(float(estimate), float(ends[0]), float(ends[1]), samples, level)


def _samples(values: ArrayLike, level: float) -> Values:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"samples [n] are needed, got shape {array.shape}")
    return _table(array, "samples", level)[:, 0]


def _pair(scores: ArrayLike, other: ArrayLike, level: float = LEVEL) -> tuple[Values, Values]:
    left, right = _table(scores, "scores", level), _table(other, "other", level)
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"both sides need the same tasks, got {left.shape[1]} and {right.shape[1]}")
    return left, right


def _table(values: ArrayLike, name: str, level: float) -> Values:
    """Return `[runs, tasks]` of finite numbers; `[runs]` is one task."""
    array = np.asarray(values, dtype=np.float64)
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"{name}: [runs, tasks] with at least one value are needed, got shape {array.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"{name}: {int((~np.isfinite(table)).sum())} of {table.size} values are not finite")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    return table
