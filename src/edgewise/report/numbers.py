"""Numbers of a page as plain values: rounded, and None for what is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable

from edgewise.evaluation.statistics import Interval


def number(value: float) -> float | None:
    """Round a number to six digits; None if it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def numbers(values: Iterable[float]) -> list[float | None]:
    """Round numbers to six digits; None for those that are not finite."""
    return [number(value) for value in values]


def plain_interval(interval: Interval) -> dict[str, float | int | None]:
    """Return an interval as plain numbers with its number of samples; None for what is not finite."""
    low, high = number(interval.low), number(interval.high)
    return {"estimate": number(interval.estimate), "low": low, "high": high, "n": interval.samples}
