"""Text notation for Hex: parse and format cells, format boards.

A cell is a column letter and a row number; `a1` is the top left corner.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgewise.config.errors import DataError
from edgewise.systems.hex.dynamics import EMPTY, FIRST, SECOND

CELL = re.compile(r"([a-s])([1-9][0-9]?)")
STONES = {EMPTY: ".", FIRST: "x", SECOND: "o"}
SWAP = "swap"


def write_cell(cell: int, size: int) -> str:
    """Return the name of a cell, such as `c2` for the third cell of the second row."""
    return f"{chr(ord('a') + cell % size)}{cell // size + 1}"


def read_cell(text: str, size: int) -> int:
    """Parse the name of a cell.

    Raises:
        DataError: the board has no such cell.
    """
    found = CELL.fullmatch(text.strip().lower())
    column, row = (ord(found[1]) - ord("a"), int(found[2]) - 1) if found else (size, size)
    if column >= size or row >= size:
        last = write_cell(size * size - 1, size)
        raise DataError(f"{text!r} is no cell of a board of side {size}: cells go from a1 to {last}")
    return row * size + column


def write_board(stones: Sequence[int], size: int) -> str:
    """Format a board: `x` is the first player, `o` the second, `.` is free; each row is indented by one more.

    Example:
        >>> print(write_board([1, 0, 0, 0, 2, 0, 0, 0, 0], 3))
        x . .
         . o .
          . . .
    """
    rows = [stones[row * size : (row + 1) * size] for row in range(size)]
    return "\n".join(" " * row + " ".join(STONES[stone] for stone in cells) for row, cells in enumerate(rows))
