"""Pictures as pixels, with Pillow (`pip install "edgewise[render]"`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.report.pictures.canvas import Anchor, Point
from edgewise.report.pictures.palette import RGB

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:  # pragma: no cover - where Pillow is missing
    raise ConfigError(
        "drawing PNG, GIF and MP4 needs Pillow",
        hint="pip install 'edgewise[render]', or write an .svg file",
    ) from error

ANCHORS = {"left": "lm", "center": "mm", "right": "rm"}
SCALE = 2
"""Pixels drawn for each pixel of the picture, along either axis, which smooths edges."""


class RasterCanvas:
    """Draws shapes into an image.

    Args:
        width: of the picture, in pixels.
        height: of the picture, in pixels.
        background: its colour.
    """

    def __init__(self, width: int, height: int, *, background: RGB) -> None:
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), background)
        self._draw = ImageDraw.Draw(self._image, "RGBA")

    def polygon(
        self,
        points: Sequence[Point],
        *,
        fill: RGB | None = None,
        stroke: RGB | None = None,
        width: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Draw an area, its border, or both."""
        scaled = _scaled(points)
        if fill is not None:
            self._draw.polygon(scaled, fill=_ink(fill, opacity))
        if stroke is not None:
            self._stroke([*scaled, scaled[0], scaled[1]], stroke, width, opacity)

    def line(self, points: Sequence[Point], *, colour: RGB, width: float, opacity: float = 1.0) -> None:
        """Draw a line through points."""
        self._stroke(_scaled(points), colour, width, opacity)

    def circle(
        self,
        centre: Point,
        radius: float,
        *,
        fill: RGB | None = None,
        stroke: RGB | None = None,
        width: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Draw a disc, its border, or both."""
        reach = radius if stroke is None else radius + width / 2
        (left, top), (right, bottom) = _scaled(
            [(centre[0] - reach, centre[1] - reach), (centre[0] + reach, centre[1] + reach)]
        )
        self._draw.ellipse(
            (left, top, right, bottom),
            fill=None if fill is None else _ink(fill, opacity),
            outline=None if stroke is None else _ink(stroke, opacity),
            width=max(1, round(width * SCALE)),
        )

    def text(
        self,
        at: Point,
        text: str,
        *,
        colour: RGB,
        size: float = 11.0,
        anchor: Anchor = "left",
        halo: RGB | None = None,
        bold: bool = False,
    ) -> None:
        """Write a line of text, vertically centred on a point; `halo` outlines it."""
        ((x, y),) = _scaled([at])
        self._draw.text(
            (x, y),
            text,
            font=_font(round(size * SCALE), bold),
            fill=colour,
            anchor=ANCHORS[anchor],
            stroke_width=0 if halo is None else round(1.75 * SCALE),
            stroke_fill=halo,
        )

    def image(
        self,
        box: tuple[float, float, float, float],
        rows: Sequence[Sequence[RGB]],
        *,
        smooth: bool,
        opacity: float,
    ) -> None:
        """Stretch an image over the box from left and top to right and bottom."""
        (left, top), (right, bottom) = _scaled([(box[0], box[1]), (box[2], box[3])])
        size = (max(1, round(right - left)), max(1, round(bottom - top)))
        content = bytes(channel for row in rows for pixel in row for channel in pixel)
        cells = Image.frombytes("RGB", (len(rows[0]), len(rows)), content)
        method = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
        mask = Image.new("L", size, round(255 * opacity))
        self._image.paste(cells.resize(size, method), (round(left), round(top)), mask)

    def width_of(self, text: str, *, size: float, bold: bool = False) -> float:
        """Return how wide a line of text is."""
        return float(_font(round(size * SCALE), bold).getlength(text)) / SCALE

    def content(self) -> Any:
        """Return the picture, a `PIL.Image.Image`."""
        width, height = self._image.size
        return self._image.resize((width // SCALE, height // SCALE), Image.Resampling.BOX)

    def _stroke(self, points: list[Point], colour: RGB, width: float, opacity: float) -> None:
        self._draw.line(points, fill=_ink(colour, opacity), width=max(1, round(width * SCALE)), joint="curve")


@cache
def _font(size: int, bold: bool) -> Any:
    """Return DejaVu Sans where the machine has it, which knows most signs, else the font of Pillow."""
    try:
        return ImageFont.truetype("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(x * SCALE, y * SCALE) for x, y in points]


def _ink(colour: RGB, opacity: float) -> tuple[int, int, int, int]:
    return (*colour, round(255 * min(1.0, max(0.0, opacity))))
