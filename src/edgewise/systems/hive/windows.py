"""Moves of three steps in the surroundings of a tile, as bits of one word per tile.

A tile that makes three steps stays within three hexes of its start. The 7 x 7 hexes around the start fit into
one int64: the hex at (dx, dy) from the start is bit `8 * (dy + 3) + dx + 3`. The eighth bit of every row is
never set, so that a shift by one step never enters another row.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

import torch
from torch import Tensor

from edgewise.scale.devices import constant
from edgewise.systems.hive.bitboards import LOW, SHIFT

REACH = 3
"""Hexes from the start to the border of the window."""
ROWS = 2 * REACH + 1
STRIDE = 8
START = STRIDE * REACH + REACH
CENTRE = 1 << START
"""The start itself."""
STEPS = (1, -7, -8, -1, 7, 8)
"""What a step adds to the number of a bit: E, NE, NW, W, SW, SE."""
ROW = 2**ROWS - 1
ALL = sum(ROW << STRIDE * row for row in range(ROWS))
"""Every hex of the window."""


def cut_out(words: Tensor, game: Tensor, hexes: Tensor) -> Tensor:
    """Return the surroundings of `hexes` `[R]` in the sets `[B, Y]` of their games `[R]`, `[R]` int64.

    Hexes have at least two hexes of the board on every side; what is off the board is empty.
    """
    padded = torch.nn.functional.pad(words, (1, 1))
    first = game * padded.shape[1] + (hexes >> SHIFT) - REACH + 1
    row = torch.arange(ROWS, device=hexes.device)
    cut = padded.flatten()[first.unsqueeze(-1) + row].long() << 1
    cut = cut >> ((hexes & LOW) - REACH + 1).unsqueeze(-1) & ROW
    return (cut << STRIDE * row).sum(-1)


def contains(window: Tensor, start: Tensor, hexes: Tensor) -> Tensor:
    """Return which `hexes` `[R, K]` are in the windows `[R]` around `start` `[R]`, bool."""
    x = (hexes & LOW) - (start & LOW).unsqueeze(-1) + REACH
    y = (hexes >> SHIFT) - (start >> SHIFT).unsqueeze(-1) + REACH
    near = (x >= 0) & (x < ROWS) & (y >= 0) & (y < ROWS)
    bit = (y * STRIDE + x).clamp(0, 63)
    return near & (window.unsqueeze(-1) >> bit & 1).bool()


def spider_ends(occupied: Tensor) -> Tensor:
    """Return where three slides lead that visit no hex twice, `[R]` int64.

    Paths are followed apart by their first hex: the second hex is then any but the start, and the third any
    but the first. The start itself may be among the ends: it is not an empty hex, so no move leads there.

    Args:
        occupied: `[R]` int64, the hive around the start, without the tile that moves.
    """
    slides = _slides(occupied)
    step = constant(tuple(START + step for step in STEPS), occupied)
    first = _move(torch.full_like(occupied, CENTRE), slides).unsqueeze(-1) & (1 << step)
    slides = tuple(each.unsqueeze(-1) for each in slides)
    second = _move(first, slides) & ~CENTRE
    third = _move(second, slides) & ~first
    return reduce(or_, third.unbind(-1))


def ladybug_ends(higher: list[Tensor]) -> Tensor:
    """Return where two steps on top of the hive and one down lead, `[R]` int64; also back to the start.

    Args:
        higher: entry k is the set of hexes with more than k tiles, without the tile that moves, `[R]` int64.
    """
    occupied, climbs = higher[0], _climbs(higher)
    first = _move(torch.full_like(occupied, CENTRE), climbs) & occupied
    second = _move(first, climbs) & occupied
    return _move(second, climbs) & ~occupied


def _slides(occupied: Tensor) -> tuple[Tensor, ...]:
    """Return the empty hexes from which a tile can slide E, NE and NW, and back.

    Exactly one hex beside a slide is occupied: with both it is a gate, with none the tile loses contact.
    """
    empty = occupied ^ ALL
    north_west, north_east = occupied << 8, occupied << 7
    to_east = empty & empty >> 1 & (north_east ^ occupied >> 8)
    to_north_east = empty & empty << 7 & (occupied >> 1 ^ north_west)
    to_north_west = empty & empty << 8 & (north_east ^ occupied << 1)
    return to_east, to_north_east, to_north_west


def _climbs(higher: list[Tensor]) -> tuple[Tensor, ...]:
    """Return the hexes from which a tile can step E, NE and NW, and back, at any height.

    A step is blocked if both hexes beside it are higher than its start and its end.
    """
    gates = [torch.zeros_like(higher[0]) for _ in range(3)]
    for level in higher:
        north_west, north_east = level << 8, level << 7
        gates[0] = gates[0] | ~(level | level >> 1) & north_east & level >> 8
        gates[1] = gates[1] | ~(level | north_east) & level >> 1 & north_west
        gates[2] = gates[2] | ~(level | north_west) & north_east & level << 1
    within = (ALL & ALL >> 1, ALL & ALL << 7, ALL & ALL << 8)
    return tuple(~gate & inner for gate, inner in zip(gates, within, strict=True))


def _move(words: Tensor, ways: tuple[Tensor, ...]) -> Tensor:
    """Return the hexes that one step reaches from a hex of the set; `ways` are those E, NE and NW."""
    to_east, to_north_east, to_north_west = ways
    found = (words & to_east) << 1 | words >> 1 & to_east
    found = found | (words & to_north_east) >> 7 | words << 7 & to_north_east
    return found | (words & to_north_west) >> 8 | words << 8 & to_north_west
