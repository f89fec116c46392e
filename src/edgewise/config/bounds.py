"""The largest numbers that make sense in a setting, by what they count. Never imports torch.

Every number of every config has a bound on both sides: its own `Field(ge=..., le=...)`, or else that of
`in_bounds`, which also holds for configs of plug-ins. What fits into memory is another question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field
from pydantic.fields import FieldInfo

FRAMES = 10**15
"""Frames, steps, batches and bytes: what is counted one after the other."""
ROWS = 10**9
"""Rows of a tensor: worlds, instances, transitions, samples."""
NODES = 10**6
"""Nodes, agents, links and places of one graph."""
WIDTH = 10**6
"""Features, heads, layers, quantiles: what makes the shapes of a network."""
VECTOR = 8192
"""Features of networks whose inputs are a vector or a list of objects."""
DEPTH = 1000
"""Layers and rounds, each of which is built."""
REAL = 1e9
"""Rates, weights, scales and distances."""
LARGEST_WHOLE, LARGEST_REAL = FRAMES, 1e12
"""Of a number without bounds of its own, with either sign."""

Width = Annotated[int, Field(ge=1, le=WIDTH)]
Real = Annotated[float, Field(ge=-REAL, le=REAL)]


def has_both(field: FieldInfo) -> bool:
    """Return whether a field has a smallest and a largest number of its own."""
    below = any(isinstance(mark, Ge | Gt) for mark in field.metadata)
    return below and any(isinstance(mark, Le | Lt) for mark in field.metadata)


def in_bounds(value: Any) -> Any:
    """Return a value of a field.

    Raises:
        ValueError: a number within it is larger than makes sense in any setting.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise ValueError(f"must be between -{LARGEST_WHOLE:.0e} and {LARGEST_WHOLE:.0e}")
    if isinstance(value, float) and abs(value) > LARGEST_REAL:
        raise ValueError(f"must be between -{LARGEST_REAL:.0e} and {LARGEST_REAL:.0e}")
    if isinstance(value, Mapping):
        for each in value.values():
            in_bounds(each)
    if isinstance(value, list | tuple):
        for each in value:
            in_bounds(each)
    return value
