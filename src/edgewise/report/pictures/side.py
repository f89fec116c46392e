"""The column beside a scene: time series, bar charts and the legend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgewise.report.pictures.canvas import Canvas
from edgewise.report.pictures.episode import Episode, item_of
from edgewise.report.pictures.palette import Palette
from edgewise.report.pictures.scene import draw_shape

HEADING, PLOT, BARS, ROW, GAP = 18.0, 60.0, 80.0, 17.0, 14.0


def height_of(episode: Episode) -> float:
    """Return the height of the column; zero if there is nothing beside the scene."""
    parts = [HEADING + PLOT + GAP for _ in episode.replay.get("series") or ()]
    parts += [HEADING + BARS + GAP for layer in episode.replay["layers"] if layer["kind"] == "bars"]
    return sum(parts) + ROW * len(episode.replay.get("legend") or ())


def draw_side(
    canvas: Canvas, episode: Episode, *, left: float, top: float, width: float, time: float, palette: Palette
) -> None:
    """Draw the column at a time in frames."""
    index = min(int(time), len(episode) - 1)
    for series in episode.replay.get("series") or ():
        _series(canvas, series, (left, top, width), index, palette)
        top += HEADING + PLOT + GAP
    for layer in episode.frames[index].values():
        if layer["kind"] == "bars":
            every = [frame[layer["name"]]["value"] for frame in episode.frames]
            _bars(canvas, layer, (left, top, width), [value for each in every for value in each], palette)
            top += HEADING + BARS + GAP
    for entry in episode.replay.get("legend") or ():
        _legend(canvas, entry, (left, top), palette)
        top += ROW


def _series(
    canvas: Canvas, series: Mapping[str, Any], place: tuple[float, float, float], index: int, palette: Palette
) -> None:
    left, top, width = place
    values, tones = series["values"], palette.tones
    now = values[index]
    unit = f" {series['unit']}" if series.get("unit") and now is not None else ""
    shown = "" if now is None else f"{now:.3g}{unit}"
    room = width - canvas.width_of(shown, size=11, bold=True) - 8
    name = _clipped(series["name"], room, canvas, size=11)
    canvas.text((left, top + 8), name, colour=tones["muted"])
    canvas.text((left + width, top + 8), shown, colour=tones["ink"], anchor="right", bold=True)
    known = [value for value in values if value is not None] or [0.0]
    low, high = min(known), max(known)
    span, foot = (high - low) or 1.0, top + HEADING + PLOT

    def at(frame: int) -> tuple[float, float]:
        share = (values[frame] - low) / span
        return left + width * frame / max(1, len(values) - 1), foot - 4 - share * (PLOT - 8)

    colour = palette.colour(series.get("color") or "accent")
    for end, tone, opacity in ((len(values), tones["faint"], 0.6), (index + 1, colour, 1.0)):
        for run in _unbroken(values[:end]):
            if len(run) > 1:
                canvas.line([at(frame) for frame in run], colour=tone, width=1.5, opacity=opacity)
    if now is not None:
        canvas.circle(at(index), 3.0, fill=colour)


def _unbroken(values: list[float | None]) -> list[list[int]]:
    """Return the stretches of frames that have a value."""
    runs: list[list[int]] = [[]]
    for frame, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(frame)
    return [run for run in runs if run]


def _bars(
    canvas: Canvas,
    layer: Mapping[str, Any],
    place: tuple[float, float, float],
    every: list[float],
    palette: Palette,
) -> None:
    left, top, width = place
    canvas.text((left, top + 8), layer.get("title") or layer["name"], colour=palette.tones["muted"])
    low = layer["low"] if layer.get("low") is not None else min(0.0, *every, 0.0)
    high = layer["high"] if layer.get("high") is not None else max(0.0, *every, 0.0)
    values = layer["value"]
    has_labels = any(item_of(layer, "label", index, "") for index in range(len(values)))
    foot = top + HEADING + BARS - (14 if has_labels else 0)
    tall, span = foot - top - HEADING, (high - low) or 1.0

    def level(value: float) -> float:
        return foot - tall * (min(high, max(low, value)) - low) / span

    step = width / max(1, len(values))
    for index, value in enumerate(values):
        start, (upper, lower) = (
            left + index * step + 1,
            sorted((level(value), level(min(high, max(low, 0.0))))),
        )
        lower, end = max(lower, upper + 1), start + max(1.0, step - 2)
        colour = palette.colour(item_of(layer, "color", index, "accent"))
        corners = [(start, upper), (end, upper), (end, lower), (start, lower)]
        canvas.polygon(corners, fill=colour, opacity=item_of(layer, "opacity", index, 1.0))
        text = _clipped(item_of(layer, "label", index, ""), step, canvas, size=10)
        if text:
            middle = (start + (step - 2) / 2, foot + 8)
            canvas.text(middle, text, colour=palette.tones["muted"], size=10, anchor="center")


def _clipped(text: str, width: float, canvas: Canvas, *, size: float) -> str:
    """Return the beginning of a text that fits into a width."""
    while text and canvas.width_of(text, size=size) > width:
        text = text[:-1]
    return text


def _legend(canvas: Canvas, entry: Mapping[str, Any], place: tuple[float, float], palette: Palette) -> None:
    left, top = place
    colour = palette.colour(entry.get("color") or "ink")
    middle = top + ROW / 2
    if entry.get("shape") == "line":
        canvas.line([(left, middle), (left + 14, middle)], colour=colour, width=2.5)
    else:
        draw_shape(canvas, entry.get("shape") or "circle", (left + 7, middle), 5.0, colour=colour)
    canvas.text((left + 22, middle), entry["label"], colour=palette.tones["muted"])
