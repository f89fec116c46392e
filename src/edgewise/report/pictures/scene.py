"""Draw the layers of a replay at one moment, as the report does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from edgewise.report.pictures.canvas import Canvas, Point, rectangle
from edgewise.report.pictures.episode import NODE_SIZE, Episode, Layer, item_of
from edgewise.report.pictures.palette import RGB, Palette, contrast

PADDING = {True: 8.0, False: 34.0}
"""Pixels around what is drawn, where the replay gives its bounds and where they are found."""
PLACES = {"center": (0, 0), "above": (0, -1), "below": (0, 1), "left": (-1, 0), "right": (1, 0)}
ANCHORS = {"center": "center", "above": "center", "below": "center", "left": "right", "right": "left"}
BEND_POINTS = 12
BOX = tuple[float, float, float, float]


class View(NamedTuple):
    """The transform from world coordinates to pixels, with equal scales."""

    scale: float
    left: float
    bottom: float

    @classmethod
    def of(cls, episode: Episode, box: BOX) -> View:
        """Return the transform that centres an episode in a box of pixels: left, top, width, height."""
        left, bottom, right, top = episode.area
        x, y, width, height = box
        pad = 2 * PADDING[episode.has_bounds]
        scale = min((width - pad) / (right - left), (height - pad) / (top - bottom))
        return cls(
            scale, x + width / 2 - scale * (left + right) / 2, y + height / 2 + scale * (bottom + top) / 2
        )

    def __call__(self, x: float, y: float) -> Point:
        """Return the pixel of a place."""
        return self.left + self.scale * x, self.bottom - self.scale * y


class Label(NamedTuple):
    """A text that is written after all layers are drawn."""

    text: str
    at: Point
    radius: float
    place: str
    fill: Any


class Scene:
    """Draws one moment of an episode.

    Args:
        canvas: to draw on.
        episode: of which.
        box: pixels to fill: left, top, width, height.
        palette: colours.
    """

    def __init__(self, canvas: Canvas, episode: Episode, box: BOX, palette: Palette) -> None:
        self.canvas, self.episode, self.palette = canvas, episode, palette
        self.view = View.of(episode, box)
        self._labels: list[Label] = []

    def draw(self, time: float) -> None:
        """Draw all layers at a time in frames, and then their labels."""
        layers, index = self.episode.at(time), min(int(time), len(self.episode) - 1)
        for layer in layers.values():
            match layer["kind"]:
                case "grid":
                    self._grid(layer)
                case "polygons":
                    self._polygons(layer)
                case "arrows":
                    self._arrows(layer)
                case "edges":
                    self._edges(layer, layers)
                case "nodes":
                    self._trails(layer, index)
                    self._nodes(layer)
        for label in self._labels:
            self._write(label)
        self._labels = []

    def _grid(self, layer: Layer) -> None:
        left, bottom, right, top = layer["bounds"]
        columns, values = layer["columns"], layer["value"]
        cells = [self.palette.at(value) for value in values]
        rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
        rows[-1] = [*rows[-1], *[rows[-1][-1]] * (columns - len(rows[-1]))]
        box = (*self.view(left, top), *self.view(right, bottom))
        opacity = item_of(layer, "opacity", 0, 1.0)
        self.canvas.image(box, rows, smooth=layer.get("smooth") is not False, opacity=opacity)

    def _polygons(self, layer: Layer) -> None:
        closed = layer.get("closed") is not False
        for index, corners in enumerate(layer["points"]):
            points = [self.view(x, y) for x, y in corners]
            opacity, width = item_of(layer, "opacity", index, 1.0), item_of(layer, "width", index, 1.25)
            border = item_of(layer, "outline", index, None)
            if closed:
                fill = self.palette.colour(item_of(layer, "color", index, "faint"))
                stroke = None if border is None else self.palette.colour(border)
                self.canvas.polygon(points, fill=fill, stroke=stroke, width=width, opacity=opacity)
            else:
                colour = self.palette.colour(border or item_of(layer, "color", index, "muted"))
                self.canvas.line(points, colour=colour, width=width, opacity=opacity)
            middle = tuple(sum(axis) / len(points) for axis in zip(*points, strict=True))
            self._label(layer, index, middle, place="center")

    def _arrows(self, layer: Layer) -> None:
        scale = item_of(layer, "scale", 0, 1.0)
        for index, (x, y) in enumerate(zip(layer["x"], layer["y"], strict=True)):
            dx, dy = (scale * item_of(layer, name, index, 0.0) for name in ("dx", "dy"))
            start, end = self.view(x, y), self.view(x + dx, y + dy)
            colour = self.palette.colour(item_of(layer, "color", index, "muted"))
            opacity = item_of(layer, "opacity", index, 0.8)
            width = item_of(layer, "width", index, 1.25)
            self.canvas.line([start, end], colour=colour, width=width, opacity=opacity)
            size = min(7.0, 3 + math.dist(start, end) / 5)
            self._head(start, end, colour=colour, size=size, opacity=opacity)

    def _edges(self, layer: Layer, layers: Mapping[str, Layer]) -> None:
        between = layer["between"]
        names = between if isinstance(between, list) else [between, between]
        sources, targets = (layers[name] for name in names)
        for index, (source, target) in enumerate(zip(layer["source"], layer["target"], strict=True)):
            width, opacity = item_of(layer, "width", index, 1.25), item_of(layer, "opacity", index, 1.0)
            if not width or not opacity:
                continue
            start = self.view(sources["x"][source], sources["y"][source])
            end = self.view(targets["x"][target], targets["y"][target])
            colour = self.palette.colour(item_of(layer, "color", index, "faint"))
            bend = _bend(start, end, item_of(layer, "curve", 0, 0.0))
            tip = end
            if layer.get("directed"):
                towards = bend or start
                gap, reach = self._radius(targets, target) + 1.5, math.dist(towards, end) or 1.0
                tip = _along(end, towards, gap / reach)
                if math.dist(start, end) > gap:
                    self._head(towards, tip, colour=colour, size=6 + 1.5 * width, opacity=opacity)
            self.canvas.line(_curve(start, bend, tip), colour=colour, width=width, opacity=opacity)
            middle = _along(start, end, 0.5)
            at = middle if bend is None else _along(middle, bend, 0.5)
            self._label(layer, index, at, place="center")

    def _nodes(self, layer: Layer) -> None:
        for index, (x, y) in enumerate(zip(layer["x"], layer["y"], strict=True)):
            at, radius = self.view(x, y), self._radius(layer, index)
            opacity = item_of(layer, "opacity", index, 1.0)
            if not opacity:
                continue
            self._ring(layer, index, at)
            self._shape(layer, index, at, radius, opacity)
            self._bar(layer, index, at, radius)
            is_shape = item_of(layer, "shape", index, "circle") != "none"
            fill = self.palette.colour(item_of(layer, "color", index, "ink")) if is_shape else None
            self._label(layer, index, at, place=layer.get("label_place") or "below", radius=radius, fill=fill)

    def _trails(self, layer: Layer, index: int) -> None:
        """Draw where items were in the last frames, the older the fainter."""
        length = layer.get("trail") or 0
        first = max(0, index - length)
        history = [self.episode.frames[frame][layer["name"]] for frame in range(first, index + 1)] + [layer]
        for place, (before, after) in enumerate(pairwise(history) if length else ()):
            opacity = 0.55 * (place + 1) / (index - first + 1)
            for item in range(min(len(before["x"]), len(after["x"]))):
                ends = [self.view(each["x"][item], each["y"][item]) for each in (before, after)]
                if ends[0] != ends[1]:
                    colour = self.palette.colour(item_of(layer, "color", item, "ink"))
                    self.canvas.line(ends, colour=colour, width=1.75, opacity=opacity)

    def _ring(self, layer: Layer, index: int, at: Point) -> None:
        ring = item_of(layer, "ring", index, 0.0)
        if ring:
            tone = item_of(layer, "ring_color", index, item_of(layer, "color", index, "muted"))
            colour, radius = self.palette.colour(tone), ring * self.view.scale
            self.canvas.circle(at, radius, fill=colour, opacity=0.07)
            self.canvas.circle(at, radius, stroke=colour, width=1.0, opacity=0.35)

    def _shape(self, layer: Layer, index: int, at: Point, radius: float, opacity: float) -> None:
        shape, border = item_of(layer, "shape", index, "circle"), item_of(layer, "outline", index, None)
        draw_shape(
            self.canvas,
            shape,
            at,
            radius,
            colour=self.palette.colour(item_of(layer, "color", index, "ink")),
            border=None if border is None else self.palette.colour(border),
            heading=item_of(layer, "heading", index, None),
            opacity=opacity,
        )

    def _bar(self, layer: Layer, index: int, at: Point, radius: float) -> None:
        value = item_of(layer, "bar", index, None)
        if value is None:
            return
        share = min(1.0, max(0.0, value / (layer.get("bar_max") or 1)))
        left, bottom, width, height = at[0] + radius + 4, at[1] + 14, 7.0, 28.0
        tones = self.palette.tones
        frame = rectangle(left, bottom - height, left + width, bottom)
        self.canvas.polygon(frame, fill=tones["panel"], stroke=tones["faint"], width=1.0)
        if share:
            filled = rectangle(left, bottom - share * height, left + width, bottom)
            self.canvas.polygon(filled, fill=tones["bad" if share >= 1 else "accent"])

    def _radius(self, layer: Layer, index: int) -> float:
        """Return the radius of an item in pixels."""
        unit = layer.get("unit") or "pixel"
        size = float(item_of(layer, "size", index, NODE_SIZE[unit]))
        return size * self.view.scale if unit == "world" else size

    def _head(self, start: Point, tip: Point, *, colour: Any, size: float, opacity: float) -> None:
        if math.dist(start, tip) < 1:
            return
        angle = math.atan2(tip[1] - start[1], tip[0] - start[0])
        sides = [
            (tip[0] - size * math.cos(angle + turn), tip[1] - size * math.sin(angle + turn))
            for turn in (-0.45, 0.45)
        ]
        self.canvas.polygon([tip, *sides], fill=colour, opacity=opacity)

    def _label(
        self, layer: Layer, index: int, at: Any, *, place: str, radius: float = 0.0, fill: Any = None
    ) -> None:
        text = item_of(layer, "label", index, "")
        if text:
            self._labels.append(Label(text, at, radius, place, fill))

    def _write(self, label: Label) -> None:
        """Write a label: inside its item where it fits, else beside it with an outline."""
        across, down = PLACES[label.place]
        at = (label.at[0] + across * (label.radius + 5), label.at[1] + down * (label.radius + 9))
        fits = self.canvas.width_of(label.text, size=11, bold=True) < 2 * label.radius
        inside = label.place == "center" and label.fill is not None and fits
        self.canvas.text(
            at,
            label.text,
            colour=contrast(label.fill) if inside else self.palette.tones["ink"],
            anchor=ANCHORS[label.place],  # type: ignore[arg-type]
            halo=None if inside else self.palette.tones["wash"],
            bold=True,
        )


def draw_shape(
    canvas: Canvas,
    shape: str,
    at: Point,
    radius: float,
    *,
    colour: RGB,
    border: RGB | None = None,
    heading: float | None = None,
    opacity: float = 1.0,
) -> None:
    """Draw the shape of a node; `heading` turns it, and gives a circle a nose."""
    turned, width = _turn(at, -(heading or 0.0)), max(1.5, min(2.5, radius / 6))
    match shape:
        case "none":
            return
        case "circle":
            canvas.circle(at, radius, fill=colour, stroke=border, width=width, opacity=opacity)
            if heading is not None:
                nose = [turned(0.25 * radius, 0.0), turned(1.7 * radius, 0.0)]
                canvas.line(nose, colour=border or colour, width=width, opacity=opacity)
        case "cross":
            for side in (-0.75 * radius, 0.75 * radius):
                ends = [turned(-0.75 * radius, -side), turned(0.75 * radius, side)]
                canvas.line(ends, colour=border or colour, width=2.25, opacity=opacity)
        case _:
            points = [turned(x * radius, y * radius) for x, y in OUTLINES[shape]]
            canvas.polygon(points, fill=colour, stroke=border, width=width, opacity=opacity)


def _regular(corners: int, turn: float) -> tuple[Point, ...]:
    angles = [turn + math.tau * corner / corners for corner in range(corners)]
    return tuple((math.cos(angle), math.sin(angle)) for angle in angles)


def _bullet() -> tuple[Point, ...]:
    upper = _curve((1.5, 0.0), (0.6, -0.75), (-1.0, -0.6))
    return (*upper, *((x, -y) for x, y in reversed(upper)))


def _bend(start: Point, end: Point, curve: float) -> Point | None:
    """Return the control point of a bent edge; None for a straight one."""
    if not curve:
        return None
    x, y = _along(start, end, 0.5)
    return x + curve * (end[1] - start[1]), y - curve * (end[0] - start[0])


def _curve(start: Point, bend: Point | None, end: Point) -> list[Point]:
    """Return points along a quadratic Bézier curve, or the ends of a straight line."""
    if bend is None:
        return [start, end]
    shares = [step / BEND_POINTS for step in range(BEND_POINTS + 1)]
    return [_along(_along(start, bend, share), _along(bend, end, share), share) for share in shares]


def _along(start: Point, end: Point, share: float) -> Point:
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def _turn(centre: Point, angle: float) -> Callable[[float, float], Point]:
    """Return the transform that turns an outline and moves it to its centre."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return lambda x, y: (centre[0] + cosine * x - sine * y, centre[1] + sine * x + cosine * y)


OUTLINES: Mapping[str, tuple[Point, ...]] = {
    "square": ((-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)),
    "diamond": _regular(4, 0.0),
    "triangle": _regular(3, 0.0),
    "hexagon": _regular(6, math.pi / 2),
    "bullet": _bullet(),
}
"""Corners of shapes of radius 1, y downwards."""
