"""What may be concluded from few runs: interquartile means, bootstrap intervals, probability of improvement.

Every interval takes a `numpy.random.Generator`, so that a figure can be printed again. The advice followed is
that of "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (https://arxiv.org/abs/2108.13264).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]
"""A function of samples `[..., n]` to one number each, `[...]`."""

RESAMPLES = 10_000
_CHUNK = 1 << 22
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Interval:
    """An estimate between two bounds; bounds are NaN where one sample says nothing of the spread."""

    estimate: float
    low: float
    high: float
    level: float = 0.95


def mean(values: ArrayLike) -> Values:
    """The mean over the last axis, `[..., n]` to `[...]`."""
    return np.asarray(values, dtype=np.float64).mean(axis=-1)


def interquartile_mean(values: ArrayLike) -> Values:
    """The mean of the middle half over the last axis, `[..., n]` to `[...]`.

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


def percentile_interval(
    values: ArrayLike,
    statistic: Statistic = mean,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """The bootstrap interval between the percentiles of the resampled statistic.

    Args:
        values: samples, `[n]`.
        statistic: what is estimated.
        generator: source of the resamples.
        level: coverage, in (0, 1).
        resamples: how many resamples are drawn.
    """
    samples = _samples(values, level)
    estimate = float(statistic(samples))
    if len(samples) == 1:
        return Interval(estimate, np.nan, np.nan, level)
    draws = bootstrap(samples[:, None], statistic, generator=generator, resamples=resamples)
    return _between(estimate, draws, level, tails=_tails(level))


def bca_interval(
    values: ArrayLike,
    statistic: Statistic = mean,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """The bias-corrected and accelerated bootstrap interval: percentiles shifted for bias and skewness.

    Efron, "Better Bootstrap Confidence Intervals" (1987). Arguments as in `percentile_interval`.

    Example:
        >>> scores = [0.1, 0.4, 0.4, 0.6, 0.9]
        >>> interval = bca_interval(scores, generator=np.random.default_rng(0))
        >>> interval.low < interval.estimate < interval.high
        True
    """
    samples = _samples(values, level)
    estimate = float(statistic(samples))
    if len(samples) == 1:
        return Interval(estimate, np.nan, np.nan, level)
    draws = bootstrap(samples[:, None], statistic, generator=generator, resamples=resamples)
    return _between(estimate, draws, level, tails=_bca_tails(samples, statistic, draws, level))


def stratified_interval(
    scores: ArrayLike,
    statistic: Statistic = interquartile_mean,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """The bootstrap interval of a statistic over all scores, runs resampled within each task.

    Args:
        scores: `[runs, tasks]`, comparable across tasks.
        statistic: of all `runs * tasks` scores together.
        generator: source of the resamples.
        level: coverage, in (0, 1).
        resamples: how many resamples are drawn.
    """
    table = _table(scores, "scores", level)
    estimate = float(statistic(table.reshape(-1)))
    if len(table) == 1:
        return Interval(estimate, np.nan, np.nan, level)
    draws = bootstrap(table, statistic, generator=generator, resamples=resamples)
    return _between(estimate, draws, level, tails=_tails(level))


def probability_of_improvement(scores: ArrayLike, other: ArrayLike) -> float:
    """How often a run of the first beats a run of the second on the same task, ties counting half.

    Args:
        scores: `[runs, tasks]`, or `[runs]` for one task.
        other: `[other runs, tasks]`; numbers of runs may differ.

    Example:
        >>> probability_of_improvement([1.0, 3.0], [0.0, 2.0])
        0.75
    """
    left, right = _pair(scores, other)
    return float(_improvement(left, right))


def improvement_interval(
    scores: ArrayLike,
    other: ArrayLike,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """The probability of improvement with its stratified bootstrap interval, both sides resampled."""
    left, right = _pair(scores, other, level)
    estimate = float(_improvement(left, right))
    if len(left) == 1 and len(right) == 1:
        return Interval(estimate, np.nan, np.nan, level)
    each = max(1, _CHUNK // (left.size * len(right)))
    parts = [
        _improvement(_resampled(left, count, generator), _resampled(right, count, generator))
        for count in _chunks(resamples, each)
    ]
    return _between(estimate, np.concatenate(parts), level, tails=_tails(level))


def paired_difference(
    values: ArrayLike,
    other: ArrayLike,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """The mean of `values - other` over pairs (the same instances), with its BCa interval.

    Args:
        values: `[n]`.
        other: `[n]`, in the same order.
        generator: source of the resamples.
        level: coverage, in (0, 1).
        resamples: how many resamples are drawn.
    """
    left, right = np.asarray(values, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(f"pairs are needed, got {left.shape} and {right.shape} values")
    return bca_interval(left - right, generator=generator, level=level, resamples=resamples)


def bootstrap(
    table: Values, statistic: Statistic, *, generator: np.random.Generator, resamples: int = RESAMPLES
) -> Values:
    """The statistic of each resample, `[resamples]`; rows of `table [n, strata]` are drawn per stratum."""
    each = max(1, _CHUNK // table.size)
    parts = [
        statistic(_resampled(table, count, generator).reshape(count, -1))
        for count in _chunks(resamples, each)
    ]
    return np.concatenate(parts)


def _resampled(table: Values, count: int, generator: np.random.Generator) -> Values:
    """`[count, n, strata]` from `[n, strata]`, each stratum drawn by itself."""
    rows, strata = table.shape
    picks = generator.integers(0, rows, size=(count, rows, strata))
    return table[picks, np.arange(strata)]


def _chunks(total: int, each: int) -> list[int]:
    return [min(each, total - start) for start in range(0, total, each)]


def _improvement(left: Values, right: Values) -> Values:
    """`[..., n, tasks]` against `[..., m, tasks]` to `[...]`."""
    difference = left[..., :, None, :] - right[..., None, :, :]
    return (0.5 + 0.5 * np.sign(difference)).mean(axis=(-1, -2, -3))


def _between(estimate: float, draws: Values, level: float, *, tails: tuple[float, float]) -> Interval:
    low, high = np.quantile(draws, tails)
    return Interval(estimate, float(low), float(high), level)


def _tails(level: float) -> tuple[float, float]:
    return (1 - level) / 2, (1 + level) / 2


def _bca_tails(samples: Values, statistic: Statistic, draws: Values, level: float) -> tuple[float, float]:
    """The percentiles that the bias of the draws and the skewness of the statistic ask for."""
    estimate = statistic(samples)
    below = (np.mean(draws < estimate) + np.mean(draws <= estimate)) / 2
    if not 0 < below < 1:
        return _tails(level)
    bias = _NORMAL.inv_cdf(float(below))
    acceleration = _acceleration(samples, statistic)
    shifted = [bias + _NORMAL.inv_cdf(tail) for tail in _tails(level)]
    low, high = (_NORMAL.cdf(bias + z / (1 - acceleration * z)) for z in shifted)
    return low, high


def _acceleration(samples: Values, statistic: Statistic) -> float:
    """A sixth of the skewness of the statistic, from leaving out one sample at a time."""
    parts = []
    count = len(samples)
    for rows in np.array_split(np.arange(count), 1 + count**2 // _CHUNK):
        others = np.arange(count - 1) + (np.arange(count - 1) >= rows[:, None])
        parts.append(statistic(samples[others]))
    left_out = np.concatenate(parts)
    deviation = left_out.mean() - left_out
    spread = float((deviation**2).sum())
    return float((deviation**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0


def _samples(values: ArrayLike, level: float) -> Values:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"samples [n] are needed, got shape {array.shape}")
    return _table(array, "samples", level)[:, 0]


def _pair(scores: ArrayLike, other: ArrayLike, level: float = 0.95) -> tuple[Values, Values]:
    left, right = _table(scores, "scores", level), _table(other, "other", level)
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"both sides need the same tasks, got {left.shape[1]} and {right.shape[1]}")
    return left, right


def _table(values: ArrayLike, name: str, level: float) -> Values:
    """`[runs, tasks]` of finite numbers; `[runs]` is one task."""
    array = np.asarray(values, dtype=np.float64)
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"{name}: [runs, tasks] with at least one value are needed, got shape {array.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"{name}: {int((~np.isfinite(table)).sum())} of {table.size} values are not finite")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    return table
