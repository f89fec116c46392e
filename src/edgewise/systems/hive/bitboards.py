"""Sets of hexes as bits: one int32 word per row of a board of 32 columns, many boards at once.

Bit x of word y is the hex (q, r) = (x, y). Boards keep two empty hexes around the hive, so that a shift by
one never leaves the board; bit 31 is never set. Every function works on words `[..., Y]`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

SHIFT = 5
LOW = 31
WIDTH = 32
"""Columns of a board; the hex in column x and row y has the number `y << SHIFT | x`."""
ALL = 2**31 - 1
"""A row in which every hex is set."""
LONGEST = 64
"""More steps than the longest path along the outside of a hive of 28 tiles."""
UNCHECKED = 2
"""Steps of a flood between two tests whether it still grows."""


def can_read(tensor: Tensor) -> bool:
    """Return whether reading values on the host is free: on a CPU, and not in FakeTensorMode."""
    return tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor)


def from_cells(hexes: Tensor, chosen: Tensor, *, rows: int) -> Tensor:
    """Build words `[B, Y]` int32 of the hexes `[B, K]` that are `chosen`; these must differ."""
    bits = chosen.to(torch.int32) << (hexes & LOW).to(torch.int32)
    words = torch.zeros(len(hexes), rows, dtype=torch.int32, device=hexes.device)
    return words.scatter_add_(1, hexes >> SHIFT, bits)


def contains(words: Tensor, game: Tensor, hexes: Tensor) -> Tensor:
    """Return which hexes `[R, K]` are in the sets `[B, Y]` of their games `[R]`, bool."""
    row = (hexes >> SHIFT) + (game * words.shape[1]).unsqueeze(-1)
    found = words.flatten().index_select(0, row.flatten()).view_as(hexes)
    return (found >> (hexes & LOW).to(torch.int32) & 1).bool()


def rings(words: Tensor, hexes: Tensor) -> Tensor:
    """Return which neighbours of `hexes` `[B, K]` are in the sets `[B, Y]`, one bit per direction."""
    row, x = hexes >> SHIFT, (hexes & LOW).to(torch.int32)
    here = words.gather(1, row) >> (x - 1)
    upper = words.gather(1, row - 1) >> x
    lower = words.gather(1, row + 1) >> (x - 1)
    east_to_west = here >> 2 & 1 | upper & 2 | (upper & 1) << 2 | (here & 1) << 3
    return (east_to_west | (lower & 3) << 4).long()


def above(words: Tensor) -> Tensor:
    """Return words whose row y is row y - 1 of `words`; the first row is empty."""
    return torch.nn.functional.pad(words[..., :-1], (1, 0))


def below(words: Tensor) -> Tensor:
    """Return words whose row y is row y + 1 of `words`; the last row is empty."""
    return torch.nn.functional.pad(words[..., 1:], (0, 1))


def neighbours(words: Tensor) -> Tensor:
    """Return the hexes that touch a hex of the set; the last row also marks the first of the next board."""
    flat = words.flatten()
    right, left = flat << 1, flat >> 1
    found = right | left
    found[:-1] |= (flat | right)[1:]
    found[1:] |= (flat | left)[:-1]
    return (found & ALL).view_as(words)


def flood(start: Tensor, step: Callable[..., Tensor], *sets: Tensor) -> Tensor:
    """Add what `step` makes of the sets `[R, Y]` until none grows; those that still do go on alone.

    Args:
        start: `[R, Y]`.
        step: takes what is reached and `sets`, and returns what is one step away.
        sets: `[R, Y]` each.
    """
    if not can_read(start):
        for _ in range(LONGEST):
            start = start | step(start, *sets)
        return start
    before = grown = start
    for _ in range(UNCHECKED):
        before, grown = grown, grown | step(grown, *sets)
    rows = (grown != before).any(-1).nonzero().squeeze(-1)
    if len(rows):
        grown[rows] = flood(grown[rows], step, *(words[rows] for words in sets))
    return grown


def passages(occupied: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the empty hexes that are joined to the one E, NE and NW of them.

    Two empty neighbours are joined unless both hexes beside them are occupied, which is a gate.
    """
    empty = occupied ^ ALL
    north_west, south_east = above(occupied), below(occupied)
    north_east, empty_north_west = north_west >> 1, above(empty)
    to_east = empty & (empty >> 1) & ~(north_east & south_east)
    to_north_east = empty & (empty_north_west >> 1) & ~(occupied >> 1 & north_west)
    to_north_west = empty & empty_north_west & ~(north_east & occupied << 1)
    return to_east, to_north_east, to_north_west


def spread(words: Tensor, to_east: Tensor, to_north_east: Tensor, to_north_west: Tensor) -> Tensor:
    """Return the hexes that are joined to a hex of the set; the others are from `passages`."""
    flat, north_east, north_west = words.flatten(), to_north_east.flatten(), to_north_west.flatten()
    found = ((words & to_east) << 1 | words >> 1 & to_east).flatten()
    # Nothing is joined to what is above the first row, so rows of different boards never mix.
    found[:-1] |= ((flat & north_east) << 1 | flat & north_west)[1:]
    row_above = flat[:-1]
    found[1:] |= row_above >> 1 & north_east[1:] | row_above & north_west[1:]
    return found.view_as(words)


def open_air(joined: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return the hexes that are joined to the edge of the board.

    Starts with what is joined to the first or the last column within its row.
    """
    to_east = joined[0]
    run = to_east << 1 | 1
    from_left = run & ~(run + 1)
    blocked = ~to_east & (ALL >> 1)
    for shift in (1, 2, 4, 8, 16):
        blocked = blocked | blocked >> shift
    return flood(from_left | blocked ^ ALL, spread, *joined)


def outside(occupied: Tensor, reached: Tensor) -> Tensor:
    """Return the empty hexes that the hive does not enclose; `reached` are those in `open_air`."""
    return flood(reached, lambda words, empty: neighbours(words) & empty, occupied ^ ALL)


def touched_once(occupied: Tensor) -> Tensor:
    """Return the hexes with exactly one occupied neighbour."""
    north_west, south_east = above(occupied), below(occupied)
    once, twice = occupied >> 1, torch.zeros_like(occupied)
    for near in (occupied << 1, north_west, north_west >> 1, south_east, south_east << 1):
        twice = twice | once & near
        once = once | near
    return once & ~twice


def last_sides(occupied: Tensor) -> Tensor:
    """Return the sides of occupied hexes that face an empty one, `[B, Y, 6]` int32.

    Of several sides that face the same hex, only the one in the last direction counts.
    """
    lower, upper = below(occupied), above(occupied)
    facing = (occupied << 1, lower << 1, lower, occupied >> 1, upper >> 1, upper)
    taken, faced = occupied, []
    for words in reversed(facing):
        faced.append(words & ~taken)
        taken = taken | words
    east, north_east, north_west, west, south_west, south_east = reversed(faced)
    sides = (east >> 1, above(north_east) >> 1, above(north_west))
    return torch.stack((*sides, west << 1, below(south_west) << 1, below(south_east)), -1)
