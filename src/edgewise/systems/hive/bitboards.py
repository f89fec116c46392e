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
UNCHECKED = 4
"""Steps of a flood between two tests whether it still grows."""


def can_read(tensor: Tensor) -> bool:
    """Return whether reading values on the host is free: on a CPU, and not in FakeTensorMode."""
    return tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor)


def from_cells(x: Tensor, y: Tensor, chosen: Tensor, *, rows: int) -> Tensor:
    """Build words `[B, Y]` int32 of the hexes `[B, K]` that are `chosen`; these must differ."""
    bits = torch.where(chosen, torch.ones_like(x, dtype=torch.int32) << x.to(torch.int32), 0)
    return torch.zeros(len(x), rows, dtype=torch.int32, device=x.device).scatter_add_(1, y, bits)


def contains(words: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return which hexes `[B, K]` are in the sets `[B, Y]`, bool."""
    return (words.gather(1, y) >> x.to(torch.int32) & 1).bool()


def above(words: Tensor) -> Tensor:
    """Return words whose row y is row y - 1 of `words`; the first row is empty."""
    return torch.nn.functional.pad(words[..., :-1], (1, 0))


def below(words: Tensor) -> Tensor:
    """Return words whose row y is row y + 1 of `words`; the last row is empty."""
    return torch.nn.functional.pad(words[..., 1:], (0, 1))


def neighbours(words: Tensor) -> Tensor:
    """Return the hexes that touch a hex of the set."""
    right, left = words << 1, words >> 1
    found = right | left
    found[..., :-1] |= (words | right)[..., 1:]
    found[..., 1:] |= (words | left)[..., :-1]
    return found & ALL


def flood(start: Tensor, step: Callable[[Tensor], Tensor]) -> Tensor:
    """Add what `step` returns to the set until it no longer grows."""
    reached = start
    for count in range(1, LONGEST + 1):
        grown = reached | step(reached)
        if count % UNCHECKED == 0 and can_read(grown) and bool((grown == reached).all()):
            return grown
        reached = grown
    return reached


def outside(occupied: Tensor) -> Tensor:
    """Return the empty hexes that are not enclosed by the hive."""
    empty = occupied ^ ALL
    to_the_left = ((occupied & -occupied) - 1) & ALL
    filled = occupied
    for shift in (1, 2, 4, 8, 16):
        filled = filled | filled >> shift
    return flood(to_the_left | (filled ^ ALL), lambda reached: neighbours(reached) & empty)


def slides(occupied: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the hexes from which a tile can slide E, NE and NW, and back, along the hive `occupied`.

    A slide joins two empty hexes of which exactly one common neighbour is occupied: with both it is a gate,
    with none the tile loses contact.
    """
    empty = occupied ^ ALL
    north_west, south_east = above(occupied), below(occupied)
    east, west, north_east = occupied >> 1, occupied << 1, north_west >> 1
    empty_north_west = above(empty)
    to_east = empty & (empty >> 1) & (north_east ^ south_east)
    to_north_east = empty & (empty_north_west >> 1) & (east ^ north_west)
    to_north_west = empty & empty_north_west & (north_east ^ west)
    return to_east, to_north_east, to_north_west


def slide(words: Tensor, ways: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return the hexes that one slide reaches from a hex of the set; `ways` are from `slides`."""
    to_east, to_north_east, to_north_west = ways
    found = (words & to_east) << 1 | words >> 1 & to_east
    found[..., :-1] |= ((words & to_north_east) << 1 | words & to_north_west)[..., 1:]
    row_above = words[..., :-1]
    found[..., 1:] |= row_above >> 1 & to_north_east[..., 1:] | row_above & to_north_west[..., 1:]
    return found
