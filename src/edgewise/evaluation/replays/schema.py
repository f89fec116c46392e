"""What may stand in an episode replay: one table per kind of layer, and one test per kind of value."""

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
"""Colours by role: the player gives each a tone for light and for dark."""

SHAPES = ("circle", "square", "diamond", "triangle", "hexagon", "cross", "boat", "none")
LABEL_PLACES = ("center", "above", "below", "left", "right")

_HEX_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Kind:
    """One kind of value: how it is called in an error, and what passes."""

    name: str
    accepts: Callable[[object], bool]


def is_number(value: object) -> bool:
    """A finite number that is not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_color(value: object) -> bool:
    if isinstance(value, str):
        return value in COLORS or _HEX_COLOR.fullmatch(value) is not None
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


def _one_of(*names: str) -> Kind:
    return Kind("one of " + ", ".join(names), lambda value: isinstance(value, str) and value in names)


NUMBER = Kind("a finite number", is_number)
LENGTH = Kind("a number from 0", lambda value: is_number(value) and value >= 0)  # type: ignore[operator]
UNIT = Kind("a number in [0, 1]", lambda value: is_number(value) and 0 <= value <= 1)  # type: ignore[operator]
INDEX = Kind("an index from 0", _is_index)
COUNT = Kind("a whole number from 1", lambda value: _is_index(value) and value != 0)
TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
COLOR = Kind(f"a colour ({', '.join(COLORS)}, #rrggbb, or a number in [0, 1])", _is_color)
POINTS = Kind("a list of at least two [x, y] points", _is_points)
BOUNDS = Kind("[left, bottom, right, top] with left < right and bottom < top", _is_bounds)
ENDS = Kind("the name of a nodes layer, or two of them", _is_ends)


@dataclass(frozen=True)
class LayerKind:
    """One kind of layer: fields of each item, the ones it needs, and options of the whole layer."""

    items: Mapping[str, Kind]
    required: tuple[str, ...]
    options: Mapping[str, Kind]
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

TOP: Mapping[str, Kind] = {
    "format": _one_of(FORMAT),
    "title": TEXT,
    "caption": TEXT,
    "bounds": BOUNDS,
    "fps": Kind("a number above 0", lambda value: is_number(value) and value > 0),  # type: ignore[operator]
    "smooth": FLAG,
    "time_label": TEXT,
    "time": Kind("a list of finite numbers", lambda v: isinstance(v, list) and all(map(is_number, v))),
    "facts": Kind("an object of texts and numbers", lambda value: isinstance(value, dict)),
    "layers": Kind("a list of layers", lambda value: isinstance(value, list)),
    "frames": Kind("a list of at least one frame", lambda value: isinstance(value, list) and len(value) > 0),
    "series": Kind("a list of series", lambda value: isinstance(value, list)),
    "captions": Kind("a list of texts", lambda v: isinstance(v, list) and all(isinstance(t, str) for t in v)),
    "marks": Kind("a list of marks", lambda value: isinstance(value, list)),
    "legend": Kind("a list of legend entries", lambda value: isinstance(value, list)),
}
REQUIRED_TOP = ("format", "title", "layers", "frames")

SERIES: Mapping[str, Kind] = {
    "name": TEXT,
    "values": Kind(
        "a list of finite numbers or nulls",
        lambda v: isinstance(v, list) and all(x is None or is_number(x) for x in v),
    ),
    "color": COLOR,
    "unit": TEXT,
}
MARK: Mapping[str, Kind] = {"frame": INDEX, "text": TEXT, "color": COLOR}
LEGEND: Mapping[str, Kind] = {"label": TEXT, "color": COLOR, "shape": _one_of(*SHAPES, "line")}
