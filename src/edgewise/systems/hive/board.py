"""The hives of many games on boards of 32 x 32 hexes: tiles, the empty hexes around them, and pins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from edgewise.scale.devices import constant
from edgewise.systems.hive import bitboards
from edgewise.systems.hive.bitboards import LOW, SHIFT, WIDTH, can_read
from edgewise.systems.hive.pieces import DIRECTIONS

MARGIN = 2
"""Empty hexes between the hive and the first column and row of its board."""
NOWHERE = WIDTH + 1
"""Hex of tiles in hand: on the board, but next to no hex that matters."""
ORIGIN = MARGIN * WIDTH + MARGIN
RINGS = tuple(tuple(bool(ring >> direction & 1) for direction in range(6)) for ring in range(64))
"""Which hexes around a tile are occupied, by `Board.ring`."""
GAP = tuple(tuple(not ring[side] and ring[side - 1] for side in range(6)) for ring in RINGS)
"""Where a run of empty hexes begins."""
SEVERAL_GAPS = tuple(sum(gap) > 1 for gap in GAP)
SLIDE = tuple(
    tuple(not ring[side] and ring[side - 1] != ring[side - 5] for side in range(6)) for ring in RINGS
)
"""Where the tile can slide: exactly one hex beside the way is occupied."""
ENTRY = tuple(
    tuple(not ring[side] and not (ring[side - 1] and ring[side - 5]) for side in range(6)) for ring in RINGS
)
"""Where no gate is in the way of the tile."""
PAIRS = ((0, 0, 0, 1, 1, 1, 2, 2, 3), (2, 3, 4, 3, 4, 5, 4, 5, 5))
"""Pairs of sides of a hex that are not adjacent."""
STEPS = tuple(q + WIDTH * r for q, r in DIRECTIONS)
"""What a step in each direction adds to the number of a hex, `y * 32 + x`."""


@dataclass(frozen=True)
class Board:
    """The hives of B games of P tiles.

    Attributes:
        level: `[B, P]` int64, tiles below the tile; -1 in hand.
        hex: `[B, P]` int64, number of the tile's hex on the board.
        ring: `[B, P]` int64, bit d is set if the hex in direction d of the tile is occupied.
        top: `[B, P]` bool, whether the tile is on the board with nothing above it.
        codes: `[B, 32 Y]` uint8, `32 * height + slot of the uppermost tile` of each hex; 0 if it is empty.
        empty: `[B, C]` int64, empty hexes that touch the hive; the origin on an empty board.
        empty_mask: `[B, C]` bool.
        node: `[B, 32 Y + 1]` int8, the node of each hex: its uppermost tile, or P + its place in `empty`; -1
            for other hexes.
        own, other: `[B, Y]` int32, the hexes of the mover's and of the opponent's uppermost tiles as bits.
        left, upper: `[B]` int64, coordinates (q, r) of the board's first column and row.

    Y is the number of rows that hold the largest hive and what touches it.
    """

    level: Tensor
    hex: Tensor
    ring: Tensor
    top: Tensor
    codes: Tensor
    empty: Tensor
    empty_mask: Tensor
    node: Tensor
    own: Tensor
    other: Tensor
    left: Tensor
    upper: Tensor

    @property
    def on_board(self) -> Tensor:
        """Which tiles are not in hand, `[B, P]` bool."""
        return self.level >= 0

    @property
    def nodes(self) -> int:
        """Number of nodes N: tiles and places for empty hexes."""
        return self.level.shape[1] + self.empty.shape[1]

    @property
    def occupied(self) -> Tensor:
        """The hexes of all tiles as bits, `[B, Y]` int32."""
        return self.own | self.other

    def at_level(self, level: int) -> Tensor:
        """Return the hexes with a tile at `level`, that is with more than `level` tiles, `[B, Y]` int32."""
        return bitboards.from_cells(self.hex, self.level == level, rows=self.own.shape[1])


def build_board(q: Tensor, r: Tensor, level: Tensor) -> Board:
    """Build the boards of the tiles at (q, r), `[B, P]` int64; those with a level of -1 are in hand."""
    games, tiles = level.shape
    device, on_board = level.device, level >= 0
    left, upper = _corner(torch.stack((q, r)), on_board).unbind()
    x, y = q - left.unsqueeze(-1), r - upper.unsqueeze(-1)
    at = torch.where(on_board, y * WIDTH + x, NOWHERE)
    rows = WIDTH
    if can_read(level):
        rows = min(WIDTH, (int(at.max()) >> SHIFT) + MARGIN + 1)
    slot = torch.arange(tiles, device=device)
    code = torch.where(on_board, (level + 1) * WIDTH + slot, 0).to(torch.uint8)
    codes = torch.zeros(games, rows * WIDTH, dtype=torch.uint8, device=device)
    codes.scatter_reduce_(1, at, code, "amax")
    top = (codes.gather(1, at) == code) & on_board
    mine = slot < tiles // 2
    own = bitboards.from_cells(at, top & mine, rows=rows)
    other = bitboards.from_cells(at, top & ~mine, rows=rows)
    empty, empty_mask, node = _touching(own | other, at, top)
    node.scatter_(1, torch.where(top, at, rows * WIDTH), slot.to(torch.int8).expand(games, tiles))
    return Board(
        level=level,
        hex=at,
        ring=bitboards.rings(own | other, at),
        top=top,
        codes=codes,
        empty=empty,
        empty_mask=empty_mask,
        node=node,
        own=own,
        other=other,
        left=left,
        upper=upper,
    )


def _corner(coordinate: Tensor, on_board: Tensor) -> Tensor:
    """Return the first column and row of the board, `[2, B]`; without tiles, (0, 0) is the origin."""
    least = torch.where(on_board, coordinate.to(torch.int32), 2**14).amin(-1)
    return torch.where(on_board.any(-1), least, 0).long() - MARGIN


def _touching(occupied: Tensor, at: Tensor, top: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number the empty hexes that touch the hive: hexes and mask `[B, C]`, and nodes of hexes.

    They are in the order of the tiles and directions that lead to them. A hex may touch several tiles, and
    the last direction in which one does counts.
    """
    games, tiles = at.shape
    device, cells = at.device, 2 * tiles + 4
    sides = bitboards.last_sides(occupied).flatten(0, 1)
    first_row = torch.arange(0, len(sides), occupied.shape[1], device=device).unsqueeze(-1)
    sides = sides.index_select(0, (first_row + (at >> SHIFT)).flatten()).view(games, tiles, 6)
    sides = sides >> (at & LOW).to(torch.int32).unsqueeze(-1) & top.to(torch.int32).unsqueeze(-1)
    game, column, place, count = ragged(sides.flatten(1).bool())
    tile = column // 6
    step = constant(STEPS, at).index_select(0, column - 6 * tile)
    reached = at.flatten().index_select(0, game * tiles + tile) + step
    empty = torch.full((games * (cells + 1),), ORIGIN, dtype=torch.int64, device=device)
    number = torch.where(place < 0, cells, place) + game * (cells + 1)
    empty = empty.scatter_(0, number, reached).view(games, cells + 1)[:, :cells].contiguous()
    hexes = occupied.shape[1] * WIDTH
    node = torch.full((games, hexes + 1), -1, dtype=torch.int8, device=device)
    empty_mask = torch.arange(cells, device=device) < count.clamp(min=1).unsqueeze(-1)
    nodes = torch.arange(tiles, tiles + cells, dtype=torch.int8, device=device).expand(games, cells)
    node.scatter_(1, torch.where(empty_mask, empty, hexes), nodes)
    node[:, hexes] = -1
    return empty, empty_mask, node


def ragged(flags: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return row, column and place within its row of the true entries of `[B, K]`, and their counts `[B]`.

    Where values cannot be read, all entries are listed; those that are false have the place -1.
    """
    rows, columns = flags.shape
    if not can_read(flags):
        row = torch.arange(rows, device=flags.device).repeat_interleave(columns)
        column = torch.arange(columns, device=flags.device).repeat(rows)
        number = flags.cumsum(1)
        return row, column, torch.where(flags, number - 1, -1).flatten(), number[:, -1]
    found = flags.view(-1).nonzero().squeeze(-1)
    count = flags.sum(-1, dtype=torch.int32).long()
    row = torch.repeat_interleave(count, output_size=len(found))
    first = count.cumsum(0) - count
    return row, found - row * columns, torch.arange(len(found)) - first.index_select(0, row), count


def pinned(board: Board, air: Tensor, asked: Tensor) -> Tensor:
    """Return which tiles would split the hive if removed, `[B, S]` bool.

    The occupied neighbours of a tile form runs, with a gap of empty hexes between two runs. The hive is
    connected, so it is split without the tile if and only if two of the gaps belong to one connected set of
    empty hexes: the outside, or a hole. Tiles on or under others never split it.

    Args:
        board: of the games.
        air: `[B, Y]`, connected empty hexes outside of the hive; the more, the less is left to find out.
        asked: `[B, S]` bool, which of the first S tiles to look at; none of them is covered.
    """
    tiles = asked.shape[1]
    ring = board.ring[:, :tiles]
    several = look_up(SEVERAL_GAPS, ring) & asked & (board.level[:, :tiles] == 0)
    game, slot = listed(several)
    place = game * tiles + slot
    gap = look_up(GAP, ring.flatten().index_select(0, place))
    near = around(board, game, slot)
    in_air = gap & bitboards.contains(air, game, near)
    splits = in_air.sum(-1) > 1
    row = listed(~splits.unsqueeze(-1))[0]
    unclear = torch.zeros_like(air[:, :1], dtype=torch.bool).index_fill_(0, game[row], True)
    rows, free, gap = listed(unclear)[0], air.clone(), gap[row]
    free[rows] = bitboards.outside(board.occupied[rows], air[rows])
    in_hole = gap & ~bitboards.contains(free, game[row], near[row])
    splits[row] |= (gap & ~in_hole).sum(-1) > 1
    enclosed = listed((in_hole.sum(-1) > 1).unsqueeze(-1))[0]
    row = row[enclosed]
    splits[row] |= _same_hole(board, game[row], slot[row], gap=in_hole[enclosed])
    return several.flatten().scatter(0, place, splits).view_as(several) & several


def _same_hole(board: Board, game: Tensor, slot: Tensor, *, gap: Tensor) -> Tensor:
    """Return which tiles `[R]` have two of the gaps `[R, 6]` in one connected set of empty hexes, `[R]` bool.

    Walks along the sides of uppermost tiles that face an empty hex. Each such side has one successor
    counter-clockwise, so every set of empty hexes is one cycle of sides. Pointer doubling gives all sides of
    a cycle its smallest number.
    """
    tiles, device = board.hex.shape[1], gap.device
    near = board.hex[game].unsqueeze(-1) + constant(STEPS, gap)
    codes = board.codes[game.view(-1, 1, 1), near]
    side = torch.arange(6 * tiles, device=device).view(tiles, 6)
    turned = torch.arange(1, 7, device=device) % 6
    following = codes[..., turned]
    corner = (following & 31).long() * 6 + (turned - 2) % 6
    straight = (side - side % 6) + turned
    after = torch.where(following > 0, corner, straight).flatten(1)
    label = side.flatten().expand(len(game), -1)
    for _ in range(8):
        label = torch.minimum(label, label.gather(1, after))
        after = after.gather(1, after)
    label = label.gather(1, slot.unsqueeze(-1) * 6 + torch.arange(6, device=device))
    first, second = constant(PAIRS, gap)
    same = gap[:, first] & gap[:, second] & (label[:, first] == label[:, second])
    return same.any(-1)


def around(board: Board, game: Tensor, slot: Tensor) -> Tensor:
    """Return the hexes around tiles `[R]`, `[R, 6]` int64."""
    at = board.hex.flatten().index_select(0, game * board.hex.shape[1] + slot)
    return at.unsqueeze(-1) + constant(STEPS, at)


def look_up(entries: tuple[Any, ...], ring: Tensor, *, dtype: torch.dtype = torch.bool) -> Tensor:
    """Look up entries by ring, such as `GAP`: `[...]` to `[...]` or `[..., 6]`."""
    found = constant(entries, ring, dtype=dtype).index_select(0, ring.flatten())
    return found.view(*ring.shape, *found.shape[1:])


def listed(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Return row and column of the true entries of `[B, K]`; of all entries where values cannot be read."""
    rows, columns = flags.shape
    if can_read(flags):
        row, column = flags.nonzero(as_tuple=True)
        return row, column
    row = torch.arange(rows, device=flags.device).repeat_interleave(columns)
    return row, torch.arange(columns, device=flags.device).repeat(rows)
