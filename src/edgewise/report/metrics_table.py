"""Read metrics.csv as columns of numbers, and reduce them to the points of a chart."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from edgewise.config import files
from edgewise.evaluation.bounds import Values

MAX_ROWS = 20_000
"""Largest number of rows that is parsed; of a longer file, every second, third, ... row is."""

CLOCKS = ("frames", "iteration", "step")
"""Columns that may be the horizontal axis, in order of preference."""


@dataclass(frozen=True)
class MetricsTable:
    """The columns of metrics.csv.

    Args:
        columns: numbers by name, `[rows]`, NaN for an empty cell.
        texts: columns of text, such as the stage.
        rows: number of rows in the file.
        not_finite: columns in which NaN or Inf is written.
    """

    columns: dict[str, Values] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0
    not_finite: tuple[str, ...] = ()

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
class Cut:
    """Where the mean of several runs ends, because the shortest of them ends there.

    Args:
        seeds: number of runs.
        shortest: last position of the shortest run.
        longest: last position of the longest run.
    """

    seeds: int
    shortest: float
    longest: float

    def to_plain(self) -> dict[str, float]:
        """Return the fields as plain numbers."""
        return {"seeds": self.seeds, "shortest": self.shortest, "longest": self.longest}


@dataclass(frozen=True)
class Curve:
    """A curve and its band, `[points]` each; the band is NaN where it is not known."""

    x: Values
    y: Values
    low: Values
    high: Values
    cut: Cut | None = None


def read_metrics(path: Path) -> MetricsTable:
    """Read a metrics file; incomplete rows, left by a crash, are ignored."""
    with _open(path) as file:
        rows = sum(1 for line in file if line.strip()) - 1
    if rows < 1:
        return MetricsTable()
    stride = -(-rows // MAX_ROWS)
    with _open(path) as file:
        filled = (line for line in file if line.strip())
        try:
            header = next(csv.reader(itertools.islice(filled, 1)))
            cells = [row for row in csv.reader(_every(filled, stride)) if len(row) == len(header)]
        except csv.Error as error:
            raise ValueError(str(error)) from error
    columns, texts, not_finite = {}, {}, []
    for name, values in zip(header, zip(*cells, strict=True), strict=False):
        numbers = _numbers(values)
        if numbers is None:
            texts[name] = list(values)
        else:
            columns[name] = numbers
            written = np.array([bool(value.strip()) for value in values])
            if (written & ~np.isfinite(numbers)).any():
                not_finite.append(name)
    return MetricsTable(columns, texts, rows, tuple(not_finite))


def thin(x: Values, y: Values, *, points: int) -> Curve:
    """Reduce a curve to at most `points` means over equal parts, with their range, ignoring NaN."""
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


def _open(path: Path) -> TextIO:
    descriptor = files.open_to_read(path, largest=files.LARGEST_TABLE)
    return os.fdopen(descriptor, encoding="utf-8", newline="", errors="replace")


def _every(lines: Iterable[str], stride: int) -> Iterator[str]:
    """Return every `stride`-th line, starting with the `stride`-th."""
    return itertools.islice(lines, stride - 1, None, stride)


def _numbers(values: Iterable[str]) -> Values | None:
    """Return the cells as numbers, NaN for empty ones; None if one is text."""
    try:
        return np.array([float(value) if value.strip() else np.nan for value in values])
    except ValueError:
        return None
