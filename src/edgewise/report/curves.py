"""Compute curves with bands: metrics of one run, means over seeds, evaluations with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.statistics import Values
from edgewise.report.metrics_table import Curve, MetricsTable, thin

POINTS = 120
RESAMPLES = 2_000
LARGEST = 4_000_000
LEVEL = 0.95


def metric_curve(tables: Sequence[MetricsTable], name: str) -> Curve | None:
    """Return the curve of a logged metric: with its range for one run, the mean with its band for several."""
    found = [(table.x, table.columns[name]) for table in tables if name in table.columns]
    curves = [curve for x, y in found if len((curve := thin(x, y, points=POINTS)).x)]
    if not curves:
        return None
    return curves[0] if len(curves) == 1 else mean_curve(curves)


def evaluation_curve(evaluations: Sequence[Evaluation], measure: str) -> Curve | None:
    """Return the mean of a measure over training, with the bootstrap interval over episodes."""
    points = []
    for evaluation in evaluations:
        values = evaluation.measures().get(measure)
        defined = np.zeros(0) if values is None else values[np.isfinite(values)]
        if evaluation.frames is not None and len(defined):
            points.append((float(evaluation.frames), float(defined.mean()), *mean_band(defined)))
    if not points:
        return None
    return Curve(*np.asarray(points).T)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Compute the mean over the seeds that have a value, and its bootstrap interval."""
    grid = np.unique(np.concatenate([curve.x for curve in curves]))
    if len(grid) > POINTS:
        grid = np.linspace(grid[0], grid[-1], POINTS)
    rows = np.stack([np.interp(grid, curve.x, curve.y, left=np.nan, right=np.nan) for curve in curves])
    grid, rows = grid[(known := np.isfinite(rows).any(axis=0))], rows[:, known]
    low, high = _column_bands(rows)
    return Curve(grid, np.nanmean(rows, axis=0), low, high)


def mean_band(values: Values) -> tuple[float, float]:
    """Compute the percentile bootstrap interval of the mean of `values [n]`, with fixed resamples."""
    low, high = _column_bands(values[:, None])
    return float(low[0]), float(high[0])


def _column_bands(rows: Values) -> tuple[Values, Values]:
    """Compute bootstrap bands of the column means of `rows [n, points]`, ignoring NaN; rows are resampled."""
    count = len(rows)
    if count == 1:
        return rows[0], rows[0]
    draws = _draws(count)
    known = np.isfinite(rows)
    totals, weights = draws @ np.where(known, rows, 0.0), draws @ known.astype(np.float64)
    means = np.where(weights > 0, totals / np.maximum(weights, 1), np.nan)
    low, high = np.nanquantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


@lru_cache(maxsize=16)
def _draws(count: int) -> Values:
    """Sample how often each of `count` rows is in each resample, `[resamples, count]`."""
    resamples = max(200, min(RESAMPLES, LARGEST // count))
    shares = np.full(count, 1 / count)
    return np.random.default_rng(0).multinomial(count, shares, size=resamples).astype(np.float64)
