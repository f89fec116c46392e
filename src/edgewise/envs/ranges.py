"""Settings that are a number or a range, from which every world draws its own. Never imports torch."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

WholeNumbers = int | tuple[int, int]
RealNumbers = float | tuple[float, float]


def lowest(value: RealNumbers) -> float:
    """The smallest number that the setting allows."""
    return value[0] if isinstance(value, tuple) else value


def highest(value: RealNumbers) -> float:
    """The largest number that the setting allows."""
    return value[1] if isinstance(value, tuple) else value


def _rising(value: RealNumbers) -> RealNumbers:
    if lowest(value) > highest(value):
        raise ValueError(f"a range goes from low to high, got {value[0]} to {value[1]}")  # type: ignore[index]
    return value


WholeRange = Annotated[WholeNumbers, AfterValidator(_rising)]
"""A whole number, or the two ends of a range, both included: `7` or `(4, 12)`."""
RealRange = Annotated[RealNumbers, AfterValidator(_rising)]
"""A number, or the two ends of a range: `0.5` or `(0.2, 0.8)`."""
