"""Hive on the page of `edgewise play`: the hive, the tiles in hand below and above it, and moves to click."""

from __future__ import annotations

import math

from tensordict import TensorDict

from edgewise.experiments.browser.board import Board, Move, Place, Tile
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.notation import Hive, write_move, write_tile
from edgewise.systems.hive.render import centre

SIDES = ("white (blue)", "black (orange)")
GAP = 3.0
"""Distance of the tiles in hand from the hive."""
ORIGIN = (0, 0)


def board(env: HiveEnv, state: TensorDict) -> Board:
    """Return the position of one game: click a tile, on the board or in hand, then where it goes."""
    hand = env.hand
    hive = Hive.of(state, hand)
    last = int(state["last"])
    placed = [
        (level, slot, centre(q, r, level))
        for (q, r), stack in hive.stacks.items()
        for level, slot in enumerate(stack)
    ]
    placed.sort()
    targets = [
        centre(q, r, len(hive.stacks.get((q, r), ()))) for slot, q, r in hive.moves if slot < hand.tiles
    ]
    held = _held(hive, [place for *_, place in placed] + targets)
    where = {slot: place for _, slot, place in placed} | held
    tiles = [
        Tile(where[slot], slot // hand.size, write_tile(slot, hand)[1:], slot == last)
        for slot in [*held, *(slot for _, slot, _ in placed)]
    ]
    listed = [move for move in state["moves"][0].tolist() if move[0] >= 0]
    moves = [_move(place, (slot, q, r), hive, where) for place, (slot, q, r) in enumerate(listed)]
    return Board(tiles, moves, SIDES, "surround the other queen (Q)")


def _move(action: int, move: tuple[int, int, int], hive: Hive, where: dict[int, Place]) -> Move:
    slot, q, r = move
    if slot == hive.hand.tiles:
        return Move(action, write_move(move, hive))
    height = len([tile for tile in hive.stacks.get((q, r), ()) if tile != slot])
    return Move(action, write_move(move, hive), centre(q, r, height), where[slot])


def _held(hive: Hive, places: list[Place]) -> dict[int, Place]:
    """Place the tiles in hand in rows, white below and black above; of equal tiles, the first lies on top."""
    hand = hive.hand
    on_board = {slot for stack in hive.stacks.values() for slot in stack}
    places = places or [centre(*ORIGIN, 0)]
    middle = (min(x for x, _ in places) + max(x for x, _ in places)) / 2
    ends = (min(y for _, y in places) - GAP, max(y for _, y in places) + GAP)
    found: dict[int, Place] = {}
    for player in (0, 1):
        slots = [slot for slot in range(player * hand.size, (player + 1) * hand.size) if slot not in on_board]
        left = middle - math.sqrt(3) * (len(slots) - 1) / 2
        found |= {slot: (left + math.sqrt(3) * k, ends[player]) for k, slot in enumerate(slots)}
    return found
