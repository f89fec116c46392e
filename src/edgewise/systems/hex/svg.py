"""One board as a picture: hexagons, stones and the four sides in their players' colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgewise.systems.hex.dynamics import EMPTY, FIRST, SECOND
from edgewise.systems.hex.notation import write_cell
from edgewise.systems.hex.render import centre

UNIT = 24
FILL = {EMPTY: "#f4f4f2", FIRST: "#2563eb", SECOND: "#ea580c"}
CORNERS = tuple((math.sin(math.pi / 3 * k), math.cos(math.pi / 3 * k)) for k in range(6))


def board_svg(stones: Sequence[int], size: int) -> str:
    """A board of side `size` as an SVG document, cells named where they are free.

    Args:
        stones: of the cells, row by row: 0 free, 1 the first player's, 2 the second's.
        size: cells along a side.
    """
    width, height = math.sqrt(3) * UNIT * (1.5 * size + 1), UNIT * (1.5 * size + 1.5)
    cells = "".join(_cell(cell, int(stones[cell]), size) for cell in range(size * size))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'font-family="sans-serif" font-size="{UNIT * 0.5:.0f}" text-anchor="middle">'
        f"<title>Hex {size} x {size}</title>{_sides(size)}{cells}</svg>"
    )


def _place(cell: int, size: int) -> tuple[float, float]:
    x, y = centre(*divmod(cell, size))
    return UNIT * (x + 1.3), UNIT * (1.3 - y)


def _cell(cell: int, stone: int, size: int) -> str:
    x, y = _place(cell, size)
    points = " ".join(f"{x + UNIT * dx:.1f},{y + UNIT * dy:.1f}" for dx, dy in CORNERS)
    hexagon = f'<polygon points="{points}" fill="{FILL[EMPTY]}" stroke="#8a8a85"/>'
    if stone == EMPTY:
        name = write_cell(cell, size)
        return f'{hexagon}<text x="{x:.1f}" y="{y + UNIT * 0.17:.1f}" fill="#77776f">{name}</text>'
    return f'{hexagon}<circle cx="{x:.1f}" cy="{y:.1f}" r="{UNIT * 0.62:.1f}" fill="{FILL[stone]}"/>'


def _sides(size: int) -> str:
    """A line behind the outer cells of each side: top and bottom the first player's."""
    corners = [_place(cell, size) for cell in (0, size - 1, size * size - 1, size * (size - 1))]
    lines = []
    for index, player in enumerate((FIRST, SECOND, FIRST, SECOND)):
        (x1, y1), (x2, y2) = corners[index], corners[(index + 1) % 4]
        down = (-1, 0, 1, 0)[index] * 0.7 * UNIT
        across = (0, 1, 0, -1)[index] * 0.7 * UNIT
        lines.append(
            f'<line x1="{x1 + across:.1f}" y1="{y1 + down:.1f}" x2="{x2 + across:.1f}" y2="{y2 + down:.1f}" '
            f'stroke="{FILL[player]}" stroke-width="{UNIT * 0.9:.1f}" stroke-linecap="round"/>'
        )
    return "".join(lines)
