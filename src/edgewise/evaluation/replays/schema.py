"""The schema of a replay: the fields of each kind of layer, and the values that each field accepts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

FORMAT = "edgewise-replay/1"

COLORS = (
    "ink",
    "muted",
    "faint",
    "accent",
    "good",
    "bad",
    "warn",
    "blue",
    "orange",
    "teal",
    "purple",
    "pink",
)
"""Colours by role; the player has a tone for light and for dark mode."""

SHAPES = ("circle", "square", "diamond", "triangle", "hexagon", "cross", "bullet", "none")
LABEL_PLACES = ("center", "above", "below", "left", "right")

_RGB_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class FieldType:
    """A type of value: its description in error messages, and a function that tests a value."""

    name: str
    accepts: Callable[[object], bool]


def is_number(value: object) -> bool:
    """Return whether a value is a finite number and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_color(value: object) -> bool:
    if isinstance(value, str):
        return value in COLORS or _RGB_COLOR.fullmatch(value) is not None
    return is_number(value) and 0 <= value <= 1  # type: ignore[operator]


def _is_points(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) >= 2
        and all(isinstance(point, list) and len(point) == 2 and all(map(is_number, point)) for point in value)
    )


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_ends(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and len(value) == 2 and all(isinstance(name, str) for name in value)
    )


def _is_bounds(value: object) -> bool:
    if not (isinstance(value, list) and len(value) == 4 and all(map(is_number, value))):
        return False
    left, bottom, right, top = value
    return left < right and bottom < top


def _one_of(*names: str) -> FieldType:
    return FieldType("one of " + ", ".join(names), lambda value: isinstance(value, str) and value in names)


NUMBER = FieldType("a finite number", is_number)
LENGTH = FieldType("a number from 0", lambda value: is_number(value) and value >= 0)  # type: ignore[operator]
UNIT = FieldType("a number in [0, 1]", lambda value: is_number(value) and 0 <= value <= 1)  # type: ignore[operator]
INDEX = FieldType("an index from 0", _is_index)
COUNT = FieldType("a whole number from 1", lambda value: _is_index(value) and value != 0)
TEXT = FieldType("a text", lambda value: isinstance(value, str))
FLAG = FieldType("true or false", lambda value: isinstance(value, bool))
COLOR = FieldType(f"a colour ({', '.join(COLORS)}, #rrggbb, or a number in [0, 1])", _is_color)
POINTS = FieldType("a list of at least two [x, y] points", _is_points)
BOUNDS = FieldType("[left, bottom, right, top] with left < right and bottom < top", _is_bounds)
ENDS = FieldType("the name of a nodes layer, or two of them", _is_ends)


@dataclass(frozen=True)
class LayerKind:
    """A kind of layer: fields of each item, required fields, and options of the whole layer."""

    items: Mapping[str, FieldType]
    required: tuple[str, ...]
    options: Mapping[str, FieldType]
    required_options: tuple[str, ...] = ()


_PAINT = {"color": COLOR, "opacity": UNIT}

LAYERS: Mapping[str, LayerKind] = {
    "nodes": LayerKind(
        items={
            "x": NUMBER,
            "y": NUMBER,
            "size": LENGTH,
            "shape": _one_of(*SHAPES),
            "outline": COLOR,
            "heading": NUMBER,
            "ring": LENGTH,
            "ring_color": COLOR,
            "bar": NUMBER,
            "label": TEXT,
            **_PAINT,
        },
        required=("x", "y"),
        options={
            "unit": _one_of("pixel", "world"),
            "trail": INDEX,
            "bar_max": LENGTH,
            "label_place": _one_of(*LABEL_PLACES),
        },
    ),
    "edges": LayerKind(
        items={"source": INDEX, "target": INDEX, "width": LENGTH, "label": TEXT, **_PAINT},
        required=("source", "target"),
        options={"between": ENDS, "directed": FLAG, "curve": NUMBER},
        required_options=("between",),
    ),
    "arrows": LayerKind(
        items={"x": NUMBER, "y": NUMBER, "dx": NUMBER, "dy": NUMBER, "width": LENGTH, **_PAINT},
        required=("x", "y", "dx", "dy"),
        options={"scale": LENGTH},
    ),
    "polygons": LayerKind(
        items={"points": POINTS, "outline": COLOR, "width": LENGTH, "label": TEXT, **_PAINT},
        required=("points",),
        options={"closed": FLAG},
    ),
    "grid": LayerKind(
        items={"value": UNIT},
        required=("value",),
        options={"columns": COUNT, "bounds": BOUNDS, "opacity": UNIT, "smooth": FLAG},
        required_options=("columns", "bounds"),
    ),
    "bars": LayerKind(
        items={"value": NUMBER, "label": TEXT, **_PAINT},
        required=("value",),
        options={"low": NUMBER, "high": NUMBER, "title": TEXT},
    ),
}

TOP: Mapping[str, FieldType] = {
    "format": _one_of(FORMAT),
    "title": TEXT,
    "caption": TEXT,
    "bounds": BOUNDS,
    "fps": FieldType("a number above 0", lambda value: is_number(value) and value > 0),  # type: ignore[operator]
    "smooth": FLAG,
    "time_label": TEXT,
    "time": FieldType("a list of finite numbers", lambda v: isinstance(v, list) and all(map(is_number, v))),
    "facts": FieldType("an object of texts and numbers", lambda value: isinstance(value, dict)),
    "layers": FieldType("a list of layers", lambda value: isinstance(value, list)),
    "frames": FieldType(
        "a list of at least one frame", lambda value: isinstance(value, list) and len(value) > 0
    ),
    "series": FieldType("a list of series", lambda value: isinstance(value, list)),
    "captions": FieldType(
        "a list of texts", lambda v: isinstance(v, list) and all(isinstance(t, str) for t in v)
    ),
    "marks": FieldType("a list of marks", lambda value: isinstance(value, list)),
    "legend": FieldType("a list of legend entries", lambda value: isinstance(value, list)),
}
REQUIRED_TOP = ("format", "title", "layers", "frames")

SERIES: Mapping[str, FieldType] = {
    "name": TEXT,
    "values": FieldType(
        "a list of finite numbers or nulls",
        lambda v: isinstance(v, list) and all(x is None or is_number(x) for x in v),
    ),
    "color": COLOR,
    "unit": TEXT,
}
MARK: Mapping[str, FieldType] = {"frame": INDEX, "text": TEXT, "color": COLOR}
LEGEND: Mapping[str, FieldType] = {"label": TEXT, "color": COLOR, "shape": _one_of(*SHAPES, "line")}
