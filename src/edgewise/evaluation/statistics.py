"""Statistics of few runs: interquartile means, bootstrap intervals, probability of improvement.

Every interval takes a `numpy.random.Generator`, so that figures are reproducible. The methods are those of
"Deep Reinforcement Learning at the Edge of the Statistical Precipice" (https://arxiv.org/abs/2108.13264).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]
"""A function that reduces the last axis, `[..., n]` to `[...]`."""

RESAMPLES = 10_000
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; the bounds are NaN if there is only one sample."""

    estimate: float
    low: float
    high: float
    level: float = 0.95

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


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


def percentile_interval(
    values: ArrayLike,
    statistic: Statistic = mean,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """Compute the percentile bootstrap interval of a statistic.

    Args:
        values: samples, `[n]`.
        statistic: the statistic to estimate.
        generator: draws the resamples.
        level: confidence level, in (0, 1).
        resamples: number of resamples.
    """
    samples = _samples(values, level)
    estimate = float(statistic(samples))
    if len(samples) == 1:
        return Interval(estimate, np.nan, np.nan, level)
    draws = bootstrap(samples[:, None], statistic, generator=generator, resamples=resamples)
    return _interval(estimate, draws, level)


def bca_interval(
    values: ArrayLike,
    statistic: Statistic = mean,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """Compute the bias-corrected and accelerated (BCa) bootstrap interval of a statistic.

    Efron, "Better Bootstrap Confidence Intervals" (1987). Arguments as in `percentile_interval`. The
    percentile interval is returned where BCa is not defined, as for samples that are all equal.

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
    found = _scipy_bca(samples, statistic, generator=generator, level=level, resamples=resamples)
    interval = found.confidence_interval
    if not (np.isfinite(interval.low) and np.isfinite(interval.high)):
        return _interval(estimate, found.bootstrap_distribution, level)
    return Interval(estimate, float(interval.low), float(interval.high), level)


def stratified_interval(
    scores: ArrayLike,
    statistic: Statistic = interquartile_mean,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """Compute the bootstrap interval of a statistic over all scores, resampling runs within each task.

    Args:
        scores: `[runs, tasks]`, comparable across tasks.
        statistic: a statistic of all `runs * tasks` scores.
        generator: draws the resamples.
        level: confidence level, in (0, 1).
        resamples: number of resamples.
    """
    table = _table(scores, "scores", level)
    estimate = float(statistic(table.reshape(-1)))
    if len(table) == 1:
        return Interval(estimate, np.nan, np.nan, level)
    draws = bootstrap(table, statistic, generator=generator, resamples=resamples)
    return _interval(estimate, draws, level)


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
    return float(_improvement(left, right))


def improvement_interval(
    scores: ArrayLike,
    other: ArrayLike,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """Compute the probability of improvement with its bootstrap interval, resampling runs of both sides."""
    left, right = _pair(scores, other, level)
    estimate = float(_improvement(left, right))
    if len(left) == 1 and len(right) == 1:
        return Interval(estimate, np.nan, np.nan, level)
    each = max(1, _CHUNK // (left.size * len(right)))
    parts = [
        _improvement(_resampled(left, count, generator), _resampled(right, count, generator))
        for count in _chunks(resamples, each)
    ]
    return _interval(estimate, np.concatenate(parts), level)


def paired_difference(
    values: ArrayLike,
    other: ArrayLike,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """Compute the mean of `values - other` over pairs (the same instances), with its BCa interval.

    Args:
        values: `[n]`.
        other: `[n]`, in the same order.
        generator: draws the resamples.
        level: confidence level, in (0, 1).
        resamples: number of resamples.
    """
    left, right = np.asarray(values, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(f"pairs are needed, got {left.shape} and {right.shape} values")
    return bca_interval(left - right, generator=generator, level=level, resamples=resamples)


def paired_ratio(
    values: ArrayLike,
    other: ArrayLike,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """Compute the mean of `values` over the mean of `other`, with its percentile interval over pairs.

    Arguments are those of `paired_difference`.

    Returns:
        The ratio; None unless every mean of `other`, also of every resample, is above zero.
    """
    pairs = np.stack([_table(one, "pairs", level)[:, 0] for one in (values, other)], -1)
    draws = np.concatenate(
        [
            pairs[generator.integers(0, len(pairs), size=(count, len(pairs)))].mean(1)
            for count in _chunks(resamples, max(1, _CHUNK // pairs.size))
        ]
    )
    means = pairs.mean(0)
    if means[1] <= 0 or (draws[:, 1] <= 0).any():
        return None
    return _interval(float(means[0] / means[1]), draws[:, 0] / draws[:, 1], level)


def bootstrap(
    table: Values, statistic: Statistic, *, generator: np.random.Generator, resamples: int = RESAMPLES
) -> Values:
    """Compute the statistic of each resample, `[resamples]`; `table [n, strata]` is resampled per stratum."""
    each = max(1, _CHUNK // table.size)
    parts = [
        statistic(_resampled(table, count, generator).reshape(count, -1))
        for count in _chunks(resamples, each)
    ]
    return np.concatenate(parts)


def _scipy_bca(
    samples: Values, statistic: Statistic, *, generator: np.random.Generator, level: float, resamples: int
) -> Any:
    """Run SciPy's BCa bootstrap; degenerate samples give an interval of NaN, without a warning."""
    import scipy.stats  # takes a second, and training needs no intervals

    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        return scipy.stats.bootstrap(
            (samples,),
            lambda draws, axis: statistic(np.moveaxis(draws, axis, -1)),
            n_resamples=resamples,
            batch=max(1, _CHUNK // len(samples)),
            vectorized=True,
            confidence_level=level,
            method="BCa",
            rng=generator,
        )


def _resampled(table: Values, count: int, generator: np.random.Generator) -> Values:
    """Draw `[count, n, strata]` from `[n, strata]`, each stratum by itself."""
    rows, strata = table.shape
    picks = generator.integers(0, rows, size=(count, rows, strata))
    return table[picks, np.arange(strata)]


def _chunks(total: int, each: int) -> list[int]:
    return [min(each, total - start) for start in range(0, total, each)]


def _improvement(left: Values, right: Values) -> Values:
    """Compare `[..., n, tasks]` with `[..., m, tasks]`; returns `[...]`."""
    difference = left[..., :, None, :] - right[..., None, :, :]
    return (0.5 + 0.5 * np.sign(difference)).mean(axis=(-1, -2, -3))


def _interval(estimate: float, draws: Values, level: float) -> Interval:
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2))
    return Interval(estimate, float(low), float(high), level)


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
