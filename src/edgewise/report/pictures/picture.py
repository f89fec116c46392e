"""The page of one moment: title, scene, caption, and the column beside."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.report.pictures.canvas import Canvas, rectangle
from edgewise.report.pictures.episode import Episode
from edgewise.report.pictures.palette import Palette
from edgewise.report.pictures.scene import Scene
from edgewise.report.pictures.side import draw_side, height_of

MARGIN, TITLE, CAPTION, SIDE = 14, 30, 24, 190
LEAST_SHAPE, LARGEST_SHAPE = 0.35, 0.9
"""Bounds of the height of a scene over its width."""


class Layout(NamedTuple):
    """Where the parts of a picture are, in pixels.

    Attributes:
        width: of the picture.
        height: of the picture.
        scene: left, top, width and height of the scene.
        side: the left end of the column beside it; None without one.
        bare: whether there is nothing but the scene.
    """

    width: int
    height: int
    scene: tuple[float, float, float, float]
    side: float | None
    bare: bool = False

    @classmethod
    def of(cls, episode: Episode, *, width: int, height: int | None = None, bare: bool = False) -> Layout:
        """Return the layout of a picture; without a height, it follows from what is shown."""
        if bare:
            height = height or 2 * round(width * _shape(episode) / 2)
            return cls(width, height, (0.0, 0.0, float(width), float(height)), None, bare=True)
        column = height_of(episode)
        inner = width - 2 * MARGIN - (SIDE + MARGIN if column else 0)
        tall = max(inner * _shape(episode), column)
        foot = CAPTION if episode.replay.get("captions") else MARGIN
        # Whole, even numbers of pixels, as video encoders need them.
        height = height or 2 * round((TITLE + tall + foot) / 2)
        scene = (float(MARGIN), float(TITLE), float(inner), float(height - TITLE - foot))
        return cls(width, height, scene, MARGIN + inner + MARGIN if column else None)


def _shape(episode: Episode) -> float:
    """Return the height of a scene over its width."""
    left, bottom, right, top = episode.area
    return min(LARGEST_SHAPE, max(LEAST_SHAPE, (top - bottom) / (right - left)))


def draw_picture(canvas: Canvas, episode: Episode, layout: Layout, *, time: float, palette: Palette) -> None:
    """Draw a moment of an episode, at a time in frames."""
    replay, tones, index = episode.replay, palette.tones, min(int(time), len(episode) - 1)
    left, top, width, height = layout.scene
    frame = rectangle(left, top, left + width, top + height)
    canvas.polygon(frame, fill=tones["panel"])
    Scene(canvas, episode, layout.scene, palette).draw(time)
    if layout.bare:
        return
    for outside in (
        rectangle(0, 0, layout.width, top),
        rectangle(0, top + height, layout.width, layout.height),
        rectangle(0, top, left, top + height),
        rectangle(left + width, top, layout.width, top + height),
    ):
        canvas.polygon(outside, fill=tones["paper"])
    canvas.polygon(frame, stroke=tones["line"], width=1.0)
    canvas.text((MARGIN, TITLE / 2), replay["title"], colour=tones["ink"], size=13, bold=True)
    clock = replay.get("time")
    moment = f"{clock[index]:g}" if clock else str(index)
    label = replay.get("time_label") or "step"
    canvas.text(
        (layout.width - MARGIN, TITLE / 2), f"{label} {moment}", colour=tones["muted"], anchor="right"
    )
    if replay.get("captions"):
        caption = replay["captions"][index]
        canvas.text((MARGIN, layout.height - CAPTION / 2), caption, colour=tones["muted"])
    if layout.side is not None:
        draw_side(canvas, episode, left=layout.side, top=TITLE, width=SIDE, time=time, palette=palette)
