"""metrics.csv as columns of numbers, thinned to what a chart can show."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from edgewise.evaluation.statistics import Values

MAX_ROWS = 20_000
"""Rows parsed of a file; of a longer one, every second, third, ... is."""

CLOCKS = ("frames", "iteration", "step")
"""Columns that may be the horizontal axis, the best first."""


@dataclass(frozen=True)
class MetricsTable:
    """What was logged, row by row.

    Args:
        columns: numbers by name, `[rows]`, NaN where a cell is empty.
        texts: the columns that hold words, such as the stage.
        rows: how many rows the file has.
    """

    columns: dict[str, Values] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0

    @property
    def clock(self) -> str:
        """Name of the horizontal axis."""
        return next((name for name in CLOCKS if name in self.columns), "row")

    @property
    def x(self) -> Values:
        """The horizontal axis, `[rows]`."""
        if self.clock in self.columns:
            return self.columns[self.clock]
        length = len(next(iter(self.columns.values()), np.zeros(0)))
        return np.arange(length, dtype=np.float64)


@dataclass(frozen=True)
class Curve:
    """A line and the band around it, `[points]` each."""

    x: Values
    y: Values
    low: Values
    high: Values


def read_metrics(path: Path) -> MetricsTable:
    """Read a metrics file; rows cut short by a crash are left out."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = sum(1 for line in file if line.strip()) - 1
    if rows < 1:
        return MetricsTable()
    stride = -(-rows // MAX_ROWS)
    with path.open(encoding="utf-8", newline="", errors="replace") as file:
        filled = (line for line in file if line.strip())
        header = next(csv.reader(itertools.islice(filled, 1)))
        cells = [row for row in csv.reader(_every(filled, stride)) if len(row) == len(header)]
    columns, texts = {}, {}
    for name, values in zip(header, zip(*cells, strict=True), strict=False):
        numbers = _numbers(values)
        if numbers is None:
            texts[name] = list(values)
        else:
            columns[name] = numbers
    return MetricsTable(columns, texts, rows)


def thin(x: Values, y: Values, *, points: int) -> Curve:
    """At most `points` means over equal parts of the rows, each with its range; NaN rows are left out."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) <= points:
        return Curve(x, y, y, y)
    starts = np.linspace(0, len(x), points, endpoint=False).astype(int)
    counts = np.diff(np.append(starts, len(x)))
    return Curve(
        x=np.add.reduceat(x, starts) / counts,
        y=np.add.reduceat(y, starts) / counts,
        low=np.minimum.reduceat(y, starts),
        high=np.maximum.reduceat(y, starts),
    )


def _every(lines: Iterable[str], stride: int) -> Iterator[str]:
    """Every `stride`-th line, counted so that the last one is among them when the file is read whole."""
    return itertools.islice(lines, stride - 1, None, stride)


def _numbers(values: Iterable[str]) -> Values | None:
    """The cells as numbers, empty ones NaN; None if one is a word."""
    try:
        return np.array([float(value) if value.strip() else np.nan for value in values])
    except ValueError:
        return None
