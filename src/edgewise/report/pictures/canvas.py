"""What pictures are drawn on. Coordinates are pixels, y downwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from edgewise.report.pictures.palette import RGB

Point = tuple[float, float]
Anchor = Literal["left", "center", "right"]


def rectangle(left: float, top: float, right: float, bottom: float) -> list[Point]:
    """Return the corners of a box."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


class Canvas(Protocol):
    """Takes shapes, the later above the earlier."""

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

    def line(self, points: Sequence[Point], *, colour: RGB, width: float, opacity: float = 1.0) -> None:
        """Draw a line through points."""

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

    def image(
        self,
        box: tuple[float, float, float, float],
        rows: Sequence[Sequence[RGB]],
        *,
        smooth: bool,
        opacity: float,
    ) -> None:
        """Stretch an image over the box from left and top to right and bottom."""

    def width_of(self, text: str, *, size: float, bold: bool = False) -> float:
        """Return about how wide a line of text is."""
