"""Text notation for Hex: parse and format cells, games and boards.

A cell is a column letter and a row number; `a1` is the top left corner. A game is its moves in order, such as
`b2 a3 c1`; `swap` as the second move takes over the first stone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgewise.config.errors import DataError
from edgewise.systems.hex.config import LARGEST, SMALLEST
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


def write_moves(cells: Sequence[int], size: int) -> str:
    """Format moves in order; a second move onto the first stone is written as `swap`."""
    swapped = len(cells) > 1 and cells[1] == cells[0]
    names = [write_cell(cell, size) for cell in cells]
    return " ".join([names[0], SWAP, *names[2:]] if swapped else names)


def read_moves(text: str, size: int) -> list[int]:
    """Parse moves in order into cells, the actions of the environment.

    Raises:
        DataError: a move is no cell of the board, or a swap is not the second move.
    """
    cells: list[int] = []
    for place, name in enumerate(text.split()):
        if name.lower() == SWAP:
            if place != 1:
                raise DataError(f"move {place + 1} is swap, but only the second move can be swap")
            cells.append(cells[0])
        else:
            cells.append(read_cell(name, size))
    return cells


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


def read_board(text: str) -> tuple[list[int], int]:
    """Parse a board in the format of `write_board` into its stones and its side.

    Raises:
        DataError: the text is not such a board.
    """
    rows = [line.split() for line in text.splitlines() if line.strip()]
    size = len(rows)
    if not SMALLEST <= size <= LARGEST:
        raise DataError(f"a board has from {SMALLEST} to {LARGEST} rows, got {size}")
    stone_of = {sign: stone for stone, sign in STONES.items()}
    for number, row in enumerate(rows, start=1):
        foreign = sorted(set(row) - stone_of.keys())
        if foreign:
            raise DataError(f"row {number} has {foreign[0]!r}; a board is made of . x o")
        if len(row) != size:
            raise DataError(f"row {number} has {len(row)} cells, but there are {size} rows")
    return [stone_of[sign] for row in rows for sign in row], size
