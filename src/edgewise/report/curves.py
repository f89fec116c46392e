"""Compute curves with bands: metrics of one run, means over seeds, evaluations with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.evaluation.bounds import mean_bounds
from edgewise.evaluation.result import Evaluation, measure_interval
from edgewise.evaluation.statistics import LEVEL
from edgewise.report.metrics_table import Curve, Cut, MetricsTable, thin

POINTS = 120


def metric_curve(tables: Sequence[MetricsTable], name: str) -> Curve | None:
    """Return the curve of a logged metric: with its range for one run, the mean with its band for several."""
    found = [(table.x, table.columns[name]) for table in tables if name in table.columns]
    curves = [curve for x, y in found if len((curve := thin(x, y, points=POINTS)).x)]
    if not curves:
        return None
    return curves[0] if len(curves) == 1 else mean_curve(curves)


def evaluation_curve(evaluations: Sequence[Evaluation], measure: str) -> Curve | None:
    """Return the mean of a measure over training, with its interval over episodes."""
    points = []
    for evaluation in evaluations:
        values = evaluation.measures().get(measure)
        defined = np.zeros(0) if values is None else values[np.isfinite(values)]
        if evaluation.frames is not None and len(defined):
            found = measure_interval(measure, defined)
            points.append((float(evaluation.frames), found.estimate, found.low, found.high))
    if not points:
        return None
    return Curve(*np.asarray(points).T)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Compute the mean over seeds with its interval, where every seed has a value.

    Beyond the end of the shortest seed there would be a mean of the survivors alone: the curve is cut there,
    and `cut` says so. Between the points of a seed, its values are interpolated.
    """
    begin, end = max(curve.x[0] for curve in curves), min(curve.x[-1] for curve in curves)
    longest = max(curve.x[-1] for curve in curves)
    grid = np.unique(np.concatenate([curve.x for curve in curves]))
    grid = grid[(begin <= grid) & (grid <= end)]
    if len(grid) > POINTS:
        grid = np.linspace(grid[0], grid[-1], POINTS)
    rows = np.stack([np.interp(grid, curve.x, curve.y) for curve in curves], axis=-1)
    low, high = mean_bounds(rows, LEVEL)
    cut = Cut(len(curves), float(end), float(longest)) if end < longest else None
    return Curve(grid, rows.mean(-1), low, high, cut)
