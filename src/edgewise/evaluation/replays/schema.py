"""The schema of a replay: the fields of each kind of layer, and the values that each field accepts."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

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

_RGB_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


def _color(value: object) -> object:
    is_name = isinstance(value, str) and (value in COLORS or _RGB_COLOR.fullmatch(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    if not (is_name or is_number):
        raise ValueError(f"a colour ({', '.join(COLORS)}, #rrggbb, or a number in [0, 1])")
    return value


def _bounds(value: list[float]) -> list[float]:
    left, bottom, right, top = value
    if not (left < right and bottom < top):
        raise ValueError("[left, bottom, right, top] with left < right and bottom < top")
    return value


T = TypeVar("T")

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Length = Annotated[Number, Field(ge=0)]
Unit = Annotated[Number, Field(ge=0, le=1)]
Index = Annotated[int, Field(strict=True, ge=0)]
Text = Annotated[str, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Color = Annotated[Any, BeforeValidator(_color)]
Point = Annotated[list[Number], Field(min_length=2, max_length=2)]
Bounds = Annotated[list[Number], Field(min_length=4, max_length=4), AfterValidator(_bounds)]
Shape = Literal["circle", "square", "diamond", "triangle", "hexagon", "cross", "bullet", "none"]

Each: TypeAlias = T | list[T] | None
"""One value for every item of a layer, or a list with one for each."""


class Entry(BaseModel):
    """A part of a replay; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class Layer(Entry):
    """What all kinds of layers share: a name, and items with equally many values of each field."""

    options: ClassVar[tuple[str, ...]] = ()
    """Fields of the whole layer, which no frame changes; all others are of its items."""

    name: Text = Field(min_length=1)

    @classmethod
    def items(cls) -> list[str]:
        """Return the fields that each item has, and that frames may change."""
        return [name for name in cls.model_fields if name not in ("name", "kind", *cls.options)]

    @model_validator(mode="after")
    def _lists_are_equally_long(self) -> Self:
        lengths = {
            name: len(value) for name in self.items() if isinstance(value := getattr(self, name), list)
        }
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise ValueError(f"fields of one layer need equally many values, got {listed}")
        return self


class Nodes(Layer):
    """Marks at positions."""

    options: ClassVar[tuple[str, ...]] = ("unit", "trail", "bar_max", "label_place")

    kind: Literal["nodes"]
    x: list[Number]
    y: list[Number]
    size: Each[Length] = None
    shape: Each[Shape] = None
    outline: Each[Color] = None
    heading: Each[Number] = None
    ring: Each[Length] = None
    ring_color: Each[Color] = None
    bar: Each[Number] = None
    label: Each[Text] = None
    color: Each[Color] = None
    opacity: Each[Unit] = None
    unit: Literal["pixel", "world"] = "pixel"
    trail: Index = 0
    bar_max: Length | None = None
    label_place: Literal["center", "above", "below", "left", "right"] = "center"


class Edges(Layer):
    """Lines between nodes of one or two layers."""

    options: ClassVar[tuple[str, ...]] = ("between", "directed", "curve")

    kind: Literal["edges"]
    source: list[Index]
    target: list[Index]
    width: Each[Length] = None
    label: Each[Text] = None
    color: Each[Color] = None
    opacity: Each[Unit] = None
    between: Text | Annotated[list[Text], Field(min_length=2, max_length=2)]
    directed: Flag = False
    curve: Number = 0.0

    @property
    def ends(self) -> list[str]:
        """Names of the layers of the sources and of the targets."""
        return [self.between, self.between] if isinstance(self.between, str) else self.between


class Arrows(Layer):
    """Vectors at positions."""

    options: ClassVar[tuple[str, ...]] = ("scale",)

    kind: Literal["arrows"]
    x: list[Number]
    y: list[Number]
    dx: list[Number]
    dy: list[Number]
    width: Each[Length] = None
    color: Each[Color] = None
    opacity: Each[Unit] = None
    scale: Length = 1.0


class Polygons(Layer):
    """Outlines and areas."""

    options: ClassVar[tuple[str, ...]] = ("closed",)

    kind: Literal["polygons"]
    points: list[Annotated[list[Point], Field(min_length=2)]]
    outline: Each[Color] = None
    width: Each[Length] = None
    label: Each[Text] = None
    color: Each[Color] = None
    opacity: Each[Unit] = None
    closed: Flag = True


class Grid(Layer):
    """A field of values in rows of equal cells."""

    options: ClassVar[tuple[str, ...]] = ("columns", "bounds", "opacity", "smooth")

    kind: Literal["grid"]
    value: list[Unit]
    columns: Annotated[Index, Field(ge=1)]
    bounds: Bounds
    opacity: Unit = 1.0
    smooth: Flag = False


class Bars(Layer):
    """A bar chart beside the picture."""

    options: ClassVar[tuple[str, ...]] = ("low", "high", "title")

    kind: Literal["bars"]
    value: list[Number]
    label: Each[Text] = None
    color: Each[Color] = None
    opacity: Each[Unit] = None
    low: Number = 0.0
    high: Number | None = None
    title: Text = ""


LAYERS: dict[str, type[Layer]] = {
    str(layer.__name__.lower()): layer for layer in (Nodes, Edges, Arrows, Polygons, Grid, Bars)
}
"""Every kind of layer by the name that replays give it."""


class Series(Entry):
    """A number over time, drawn below the picture."""

    name: Text
    values: list[Number | None]
    color: Color = "accent"
    unit: Text = ""


class Mark(Entry):
    """A moment that the time line marks."""

    frame: Index
    text: Text
    color: Color = "accent"


class LegendEntry(Entry):
    """What a colour or shape means."""

    label: Text
    color: Color = "ink"
    shape: Shape | Literal["line"] = "circle"


class Replay(Entry):
    """A recorded episode; `check` reads layers and frames, which depend on each other."""

    format: Literal["edgewise-replay/1"]
    title: Text
    caption: Text = ""
    bounds: Bounds | None = None
    fps: Annotated[Number, Field(gt=0)] = 4.0
    smooth: Flag = True
    time_label: Text = "step"
    time: list[Number] = []
    facts: dict[str, Text | Number] = {}
    layers: list[dict[str, Any]]
    frames: Annotated[list[dict[str, dict[str, Any]]], Field(min_length=1)]
    series: list[Series] = []
    captions: list[Text] = []
    marks: list[Mark] = []
    legend: list[LegendEntry] = []
