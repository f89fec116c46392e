"""What a game shows on the page: tiles, and moves that are made by clicks on tiles.

An environment that can be played declares a function `board(env, state)`, which returns a `Board` for one
world, and optionally `record(env, moves, result)`, the text of a finished or unfinished game.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Place = tuple[float, float]
"""Coordinates of a tile's centre, for hexagons of radius 1 with a corner on top; y points up."""


@dataclass(frozen=True)
class Tile:
    """A hexagon on the page; later ones are drawn above earlier ones.

    Args:
        place: its centre.
        owner: 0 or 1 for a player's tile, None for an empty cell.
        label: a short text on it.
        marked: whether it is the latest move.
    """

    place: Place
    owner: int | None = None
    label: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Move:
    """A legal move.

    Args:
        action: of the environment.
        name: in the notation of the game.
        target: where to click to make it; None for a move without a place, which gets a button.
        source: the tile to click first; None if the target is enough.
    """

    action: int
    name: str
    target: Place | None = None
    source: Place | None = None


@dataclass(frozen=True)
class Board:
    """One position of a game.

    Args:
        tiles: in the order in which they are drawn.
        moves: legal moves.
        sides: names of the two players' sides, such as their colours.
        note: a line below the board.
    """

    tiles: list[Tile]
    moves: list[Move]
    sides: tuple[str, str] = ("first", "second")
    note: str = field(default="")
