"""Colours of pictures: those of the report, read from its style sheet."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from edgewise.config import files

Theme = Literal["light", "dark"]
RGB = tuple[int, int, int]

_VARIABLE = re.compile(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")


class Palette(NamedTuple):
    """The colours of a theme.

    Attributes:
        tones: colours by name: roles of replays, and `panel`, `wash` and `line`.
        ramp: the colours of 0, 0.5 and 1.
    """

    tones: dict[str, RGB]
    ramp: tuple[RGB, RGB, RGB]

    def colour(self, value: object) -> RGB:
        """Return the colour of a role, of `#rrggbb`, or of a number in [0, 1]."""
        if isinstance(value, int | float):
            return self.at(float(value))
        name = str(value)
        return rgb(name) if name.startswith("#") else self.tones[name]

    def at(self, value: float) -> RGB:
        """Return a colour of the ramp."""
        place = 2 * min(1.0, max(0.0, value))
        low, high = self.ramp[:2] if place < 1 else self.ramp[1:]
        part = place if place < 1 else place - 1
        red, green, blue = (round(a + part * (b - a)) for a, b in zip(low, high, strict=True))
        return red, green, blue


@cache
def palette(theme: Theme) -> Palette:
    """Return the colours of a theme of the report."""
    style = files.read_text(Path(__file__).parents[1] / "assets" / "style.css")
    tones = {name: rgb(light if theme == "light" else dark) for name, light, dark in _VARIABLE.findall(style)}
    return Palette(tones, (tones["ramp-low"], tones["ramp-mid"], tones["ramp-high"]))


def rgb(text: str) -> RGB:
    """Return the channels of `#rrggbb`."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def contrast(fill: RGB) -> RGB:
    """Return black or white, whichever is easier to read on a colour."""
    red, green, blue = fill
    return (20, 23, 26) if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else (255, 255, 255)
