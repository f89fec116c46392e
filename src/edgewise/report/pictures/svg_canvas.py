"""Pictures as SVG text; needs no other package."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from edgewise.report.pictures.canvas import Anchor, Point
from edgewise.report.pictures.palette import RGB

ANCHORS = {"left": "start", "center": "middle", "right": "end"}
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


class SvgCanvas:
    """Collects shapes as elements of an SVG picture.

    Args:
        width: of the picture, in pixels.
        height: of the picture, in pixels.
        background: its colour.
        title: what the picture shows, for readers that cannot see it.
    """

    def __init__(self, width: int, height: int, *, background: RGB, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._elements = [f'<rect width="{width}" height="{height}" fill="{_code(background)}"/>']

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
        self._add(f'<polygon points="{_points(points)}"{_paint(fill, stroke, width, opacity)}/>')

    def line(self, points: Sequence[Point], *, colour: RGB, width: float, opacity: float = 1.0) -> None:
        """Draw a line through points."""
        paint = _paint(None, colour, width, opacity)
        self._add(f'<polyline points="{_points(points)}" stroke-linecap="round"{paint}/>')

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
        place = f'cx="{_number(centre[0])}" cy="{_number(centre[1])}" r="{_number(radius)}"'
        self._add(f"<circle {place}{_paint(fill, stroke, width, opacity)}/>")

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
        outline = "" if halo is None else f' stroke="{_code(halo)}" stroke-width="3.5" paint-order="stroke"'
        weight = ' font-weight="600"' if bold else ""
        self._add(
            f'<text x="{_number(at[0])}" y="{_number(at[1] + 0.36 * size)}" font-size="{_number(size)}" '
            f'text-anchor="{ANCHORS[anchor]}" fill="{_code(colour)}"{outline}{weight}>{escape(text)}</text>'
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
        left, top, right, bottom = box
        rendering = "" if smooth else ' style="image-rendering: pixelated"'
        content = base64.b64encode(_png(rows)).decode()
        self._add(
            f'<image x="{_number(left)}" y="{_number(top)}" width="{_number(right - left)}" '
            f'height="{_number(bottom - top)}" preserveAspectRatio="none" opacity="{_number(opacity)}"'
            f'{rendering} href="data:image/png;base64,{content}"/>'
        )

    def width_of(self, text: str, *, size: float, bold: bool = False) -> float:
        """Return about how wide a line of text is."""
        return len(text) * size * (0.58 if bold else 0.54)

    def content(self) -> str:
        """Return the picture."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family={quoteattr(FONT)} role="img">'
        )
        return "\n".join([head, f"<title>{escape(self.title)}</title>", *self._elements, "</svg>", ""])

    def _add(self, element: str) -> None:
        self._elements.append(element)


def _code(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _paint(fill: RGB | None, stroke: RGB | None, width: float, opacity: float) -> str:
    text = f' fill="{"none" if fill is None else _code(fill)}"'
    if stroke is not None:
        text += f' stroke="{_code(stroke)}" stroke-width="{_number(width)}" stroke-linejoin="round"'
    return text if opacity >= 1 else f'{text} opacity="{_number(opacity)}"'


def _png(rows: Sequence[Sequence[RGB]]) -> bytes:
    """Return a PNG file of 8-bit colours (https://www.w3.org/TR/png)."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + bytes(channel for pixel in row for channel in pixel) for row in rows)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
