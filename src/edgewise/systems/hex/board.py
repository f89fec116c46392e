"""Hex on the page of `edgewise play`: cells to click, and games as text."""

from __future__ import annotations

from collections.abc import Sequence

from tensordict import TensorDict

from edgewise.experiments.browser.board import Board, Move, Tile
from edgewise.systems.hex.dynamics import EMPTY
from edgewise.systems.hex.env import HexEnv
from edgewise.systems.hex.notation import SWAP, write_board, write_cell
from edgewise.systems.hex.render import centre

SIDES = ("blue, top to bottom", "orange, left to right")
RESULTS = {None: "*", 1: "1-0", -1: "0-1"}


def board(env: HexEnv, state: TensorDict) -> Board:
    """Return the board of one game; the second player swaps by a click on the first stone."""
    size = int(state["size"])
    stones = state["stones"][0, : size * size].tolist()
    places = [centre(cell // size, cell % size) for cell in range(size * size)]
    tiles = [
        Tile(places[cell], None if stone == EMPTY else stone - 1, write_cell(cell, size))
        for cell, stone in enumerate(stones)
    ]
    moves = [
        Move(cell, SWAP if stones[cell] != EMPTY else write_cell(cell, size), places[cell])
        for cell in env.mask(state)[0].nonzero().flatten().tolist()
    ]
    return Board(tiles, moves, SIDES, "connect your two sides of the board")


def record(env: HexEnv, start: TensorDict, moves: Sequence[str], result: float | None) -> str:  # noqa: ARG001 - the same for all games
    """Write a game: the board at its start, the moves, and the result (`*` while it goes on)."""
    size = int(start["size"])
    opening = write_board(start["stones"][0, : size * size].tolist(), size)
    return f"{opening}\n{' '.join(moves)}\n{RESULTS[None if result is None else round(result)]}\n"
