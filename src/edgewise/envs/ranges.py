"""Settings that are a number, or a range from which every world samples its own. Never imports torch."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from edgewise.config.bounds import NODES, Real

Whole = Annotated[int, Field(ge=-NODES, le=NODES)]
WholeNumbers = Whole | tuple[Whole, Whole]
RealNumbers = Real | tuple[Real, Real]


def lower_bound(value: RealNumbers) -> float:
    """Return the smallest number of a setting."""
    return value[0] if isinstance(value, tuple) else value


def upper_bound(value: RealNumbers) -> float:
    """Return the largest number of a setting."""
    return value[1] if isinstance(value, tuple) else value


def _check_order(value: RealNumbers) -> RealNumbers:
    if lower_bound(value) > upper_bound(value):
        raise ValueError(f"a range goes from low to high, got {value[0]} to {value[1]}")  # type: ignore[index]
    return value


WholeRange = Annotated[WholeNumbers, AfterValidator(_check_order)]
"""An integer, or the bounds of a range, both included: `7` or `(4, 12)`."""
RealRange = Annotated[RealNumbers, AfterValidator(_check_order)]
"""A real number, or the bounds of a range: `0.5` or `(0.2, 0.8)`."""
