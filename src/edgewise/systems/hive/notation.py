r"""Moves of Hive in the notation of the Universal Hive Protocol (UHP): parse and format.

A tile is its colour, its letter and its number among equal tiles, such as `wA1` or `bQ`; Q, M, L and P have
no number. A move names the tile and its destination by a neighbour, with a sign on the side where the tile
goes: `wA1 bQ-` (east), `wA1 bQ/` (north-east), `wA1 \bQ` (north-west), `wA1 -bQ` (west), `wA1 /bQ`
(south-west), `wA1 bQ\` (south-east). `wB1 bQ` goes on top of bQ. The first tile of a game has no destination,
and `pass` is a pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from edgewise.config.errors import DataError
from edgewise.systems.hive.dynamics import ABSENT, Position
from edgewise.systems.hive.pieces import DIRECTIONS, KINDS, Hand

PASS = "pass"
WITHOUT_NUMBER = "QMLP"
SIGNS = (("", "-"), ("", "/"), ("\\", ""), ("-", ""), ("/", ""), ("", "\\"))
"""Signs before and after the neighbour's name for a tile in each of `DIRECTIONS` from it."""
DESTINATION = re.compile(r"([-/\\]?)([a-zA-Z][a-zA-Z0-9]*)([-/\\]?)")

Move = tuple[int, int, int]
"""Slot, q and r, as in the entry `moves` of a position."""
Place = tuple[int, int]


@dataclass(frozen=True)
class Hive:
    """One game's tiles as plain numbers.

    Args:
        hand: of both players.
        stacks: tiles on each hex (q, r), by slot, the lowest first.
        moves: legal moves.
    """

    hand: Hand
    stacks: dict[Place, list[int]]
    moves: list[Move]

    @classmethod
    def of(cls, position: Position, hand: Hand, *, game: int = 0) -> Hive:
        """Read one game of a position."""
        q, r, level = (position[name][game].tolist() for name in ("q", "r", "level"))
        stacks: dict[Place, list[int]] = {}
        for slot in sorted(range(hand.tiles), key=lambda slot: level[slot]):
            if level[slot] >= 0:
                stacks.setdefault((q[slot], r[slot]), []).append(slot)
        moves = [(slot, x, y) for slot, x, y in position["moves"][game].tolist() if slot != ABSENT]
        return cls(hand, stacks, moves)


def write_tile(slot: int, hand: Hand) -> str:
    """Return the name of the tile in a slot, such as `bA2`."""
    kind = hand.kinds[slot % hand.size]
    number = hand.kinds[: slot % hand.size].count(kind) + 1
    letter = KINDS[kind]
    return f"{'wb'[slot // hand.size]}{letter}{'' if letter in WITHOUT_NUMBER else number}"


def read_tile(text: str, hand: Hand) -> int:
    """Parse the name of a tile into its slot.

    Raises:
        DataError: no player has such a tile.
    """
    names = [write_tile(slot, hand) for slot in range(hand.tiles)]
    if text not in names:
        raise DataError(
            f"{text!r} is no tile of this game",
            hint=f"tiles are {', '.join(names)}",
        )
    return names.index(text)


def write_move(move: Move, hive: Hive) -> str:
    """Format a move that is legal in `hive`."""
    slot, q, r = move
    if slot == hive.hand.tiles:
        return PASS
    name = write_tile(slot, hive.hand)
    if not hive.stacks:
        return name
    below = [tile for tile in hive.stacks.get((q, r), ()) if tile != slot]
    if below:
        return f"{name} {write_tile(below[-1], hive.hand)}"
    for (step_q, step_r), (before, after) in zip(DIRECTIONS, SIGNS, strict=True):
        stack = [tile for tile in hive.stacks.get((q - step_q, r - step_r), ()) if tile != slot]
        if stack:
            return f"{name} {before}{write_tile(stack[-1], hive.hand)}{after}"
    raise DataError(f"{name} at {(q, r)} would touch no other tile")


def read_move(text: str, hive: Hive) -> Move:
    """Parse a move and check that it is legal in `hive`.

    Raises:
        DataError: the text is no move, names a tile that the game does not have, or the move is not legal.
    """
    words = text.split()
    if words == [PASS]:
        move = next((move for move in hive.moves if move[0] == hive.hand.tiles), None)
        if move is None:
            raise DataError(f"a pass is legal only without another move, and there are {len(hive.moves)}")
        return move
    if not 1 <= len(words) <= 2:
        raise DataError(f"{text!r} is no move: expected a tile and its destination, such as `wA1 bQ-`")
    slot = read_tile(words[0], hive.hand)
    q, r = read_destination(words, hive)
    if (slot, q, r) not in hive.moves:
        raise DataError(f"{text!r} is not legal here", hint=_legal_moves(slot, hive))
    return slot, q, r


def read_destination(words: Sequence[str], hive: Hive) -> Place:
    """Parse the hex that a move goes to, from the words of the move.

    Raises:
        DataError: it is no destination in this game.
    """
    if len(words) == 1:
        if hive.stacks:
            raise DataError(f"{words[0]!r} has no destination: only the first tile of a game needs none")
        return 0, 0
    found = DESTINATION.fullmatch(words[1])
    if found is None or (found[1] and found[3]):
        raise DataError(
            f"{words[1]!r} is no destination: expected a tile with a sign - / \\ before or after it,"
            " or without one to go on top of it"
        )
    neighbour = read_tile(found[2], hive.hand)
    place = next((place for place, stack in hive.stacks.items() if neighbour in stack), None)
    if place is None:
        raise DataError(f"{words[1]!r} is no destination: {found[2]} is not on the board")
    if not found[1] and not found[3]:
        return place
    q, r = DIRECTIONS[SIGNS.index((found[1], found[3]))]
    there = place[0] + q, place[1] + r
    stack = [tile for tile in hive.stacks.get(there, ()) if write_tile(tile, hive.hand) != words[0]]
    if stack:
        top = write_tile(stack[-1], hive.hand)
        raise DataError(
            f"{words[1]!r} is no destination: {top} is there",
            hint=f"a move on top of it is written `{words[0]} {top}`",
        )
    return there


def _legal_moves(slot: int, hive: Hive) -> str:
    legal = [write_move(move, hive) for move in hive.moves if move[0] == slot]
    if not legal:
        return f"{write_tile(slot, hive.hand)} has no legal move"
    shown = ", ".join(legal[:8]) + (", ..." if len(legal) > 8 else "")
    return f"legal moves of this tile: {shown}"
