"""The hives of many games on boards of 32 x 32 hexes: tiles, the empty hexes around them, and pins."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.hive import bitboards
from edgewise.systems.hive.bitboards import LOW, SHIFT, WIDTH, can_read
from edgewise.systems.hive.pieces import DIRECTIONS

MARGIN = 2
"""Empty hexes between the hive and the first column and row of its board."""
NOWHERE = WIDTH + 1
"""Hex of tiles in hand: on the board, but next to no hex that matters."""
ORIGIN = MARGIN * WIDTH + MARGIN
HEXES = WIDTH * WIDTH
STEPS = tuple(q + WIDTH * r for q, r in DIRECTIONS)
"""What a step in each direction adds to the number of a hex, `y * 32 + x`."""


@dataclass(frozen=True)
class Board:
    """The hives of B games of P tiles.

    Attributes:
        level: `[B, P]` int64, tiles below the tile; -1 in hand.
        hex: `[B, P]` int64, number of the tile's hex on the board.
        near: `[B, P, 6]` int64, the hexes around it.
        near_height: `[B, P, 6]` int16, how many tiles lie there.
        near_top: `[B, P, 6]` int64, slot of the uppermost tile there; 0 if there is none.
        top: `[B, P]` bool, whether the tile is on the board with nothing above it.
        codes: `[B, 1024]` int16, `32 * height + slot of the uppermost tile` of each hex; 0 if it is empty.
        empty: `[B, C]` int64, empty hexes that touch the hive; the origin on an empty board.
        empty_mask: `[B, C]` bool.
        node: `[B, 1025]` int16, the node of each hex: its uppermost tile, or P + its place in `empty`; -1 for
            other hexes.
        left, upper: `[B]` int64, coordinates (q, r) of the board's first column and row.
        rows: number of rows Y that hold the hive and what touches it.
    """

    level: Tensor
    hex: Tensor
    near: Tensor
    near_height: Tensor
    near_top: Tensor
    top: Tensor
    codes: Tensor
    empty: Tensor
    empty_mask: Tensor
    node: Tensor
    left: Tensor
    upper: Tensor
    rows: int

    @property
    def on_board(self) -> Tensor:
        """Which tiles are not in hand, `[B, P]` bool."""
        return self.level >= 0

    def words(self, chosen: Tensor) -> Tensor:
        """Return the hexes of the tiles `chosen` `[B, P]`, at most one per hex, as bits `[B, Y]`."""
        return bitboards.from_cells(self.hex & LOW, self.hex >> SHIFT, chosen, rows=self.rows)


def build_board(q: Tensor, r: Tensor, level: Tensor) -> Board:
    """Build the boards of the tiles at (q, r), `[B, P]` int64; those with a level of -1 are in hand."""
    games, tiles = level.shape
    device, on_board = level.device, level >= 0
    left, upper = _corner(q, on_board), _corner(r, on_board)
    x, y = q - left.unsqueeze(-1), r - upper.unsqueeze(-1)
    at = torch.where(on_board, y * WIDTH + x, NOWHERE)
    rows = WIDTH
    if can_read(level):
        rows = min(WIDTH, (int(at.max()) >> SHIFT) + MARGIN + 1)
    slot = torch.arange(tiles, device=device)
    code = torch.where(on_board, (level + 1) * WIDTH + slot, 0).to(torch.int16)
    codes = torch.zeros(games, HEXES, dtype=torch.int16, device=device)
    codes.scatter_reduce_(1, at, code, "amax")
    top = (codes.gather(1, at) == code) & on_board
    near = at.unsqueeze(-1) + torch.tensor(STEPS, device=device)
    near_codes = codes.gather(1, near.flatten(1)).view(games, tiles, 6)
    near_height = near_codes >> 5
    empty, empty_mask, node = _touching(near, open_side=top.unsqueeze(-1) & (near_height == 0))
    node.scatter_(1, torch.where(top, at, HEXES), slot.to(torch.int16).expand(games, tiles))
    return Board(
        level=level,
        hex=at,
        near=near,
        near_height=near_height,
        near_top=(near_codes & 31).long(),
        top=top,
        codes=codes,
        empty=empty,
        empty_mask=empty_mask,
        node=node,
        left=left,
        upper=upper,
        rows=rows,
    )


def _corner(coordinate: Tensor, on_board: Tensor) -> Tensor:
    """Return the first column or row of the board, `[B]`; without tiles, (0, 0) is the origin."""
    least = coordinate.masked_fill(~on_board, 2**14).amin(-1)
    return torch.where(on_board.any(-1), least, 0) - MARGIN


def _touching(near: Tensor, *, open_side: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number the empty hexes that touch the hive: hexes and mask `[B, C]`, and nodes of hexes `[B, 1025]`.

    A hex may touch several tiles, and the last direction in which one does counts. Sides in one direction
    lead to different hexes, so no two of them write to the same place.
    """
    games, tiles, _ = near.shape
    device, cells = near.device, 2 * tiles + 4
    node = torch.full((games, HEXES + 1), -1, dtype=torch.int16, device=device)
    target = torch.where(open_side, near, HEXES)
    for direction in range(6):
        mark = torch.full((games, tiles), direction, dtype=torch.int16, device=device)
        node.scatter_(1, target[..., direction], mark)
    marks = node.gather(1, target.flatten(1)).view_as(target)
    counted = open_side & (marks == torch.arange(6, dtype=torch.int16, device=device))
    place = counted.flatten(1).cumsum(1, dtype=torch.int16)
    number = torch.where(counted.flatten(1), place - 1, cells).long()
    empty = torch.full((games, cells + 1), ORIGIN, dtype=torch.int64, device=device)
    empty = empty.scatter_(1, number, near.flatten(1))[:, :cells].contiguous()
    count = place[:, -1:].clamp(min=1)
    empty_mask = torch.arange(cells, device=device) < count
    nodes = torch.arange(tiles, tiles + cells, dtype=torch.int16, device=device).expand(games, cells)
    node.scatter_(1, torch.where(empty_mask, empty, HEXES), nodes)
    node[:, HEXES] = -1
    return empty, empty_mask, node


def pinned(board: Board) -> Tensor:
    """Return the tiles whose removal would split the hive, `[B, P]` bool; tiles on or under others never do.

    The occupied neighbours of a tile form runs, with a gap of empty hexes between two runs. The hive is
    connected, so it is split without the tile if and only if two of the gaps belong to one connected set of
    empty hexes: the outside, or a hole.
    """
    occupied = board.words(board.top)
    open_side = board.near_height == 0
    gap = open_side & ~open_side.roll(1, -1)
    candidate = board.top & (board.level == 0) & (gap.sum(-1) > 1)
    gap = gap & candidate.unsqueeze(-1)
    side = board.near.flatten(1)
    free = bitboards.outside(occupied)
    within = bitboards.contains(free, side & LOW, side >> SHIFT).view_as(gap)
    splits = (gap & within).sum(-1) > 1
    in_hole = gap & ~within
    unclear = in_hole.sum(-1) > 1
    if not can_read(unclear):
        return splits | (unclear & _same_hole(board.near_top, board.near_height, gap=in_hole))
    rows = unclear.any(-1).nonzero().squeeze(-1)
    if len(rows):
        near_top, near_height = board.near_top[rows], board.near_height[rows]
        splits[rows] |= unclear[rows] & _same_hole(near_top, near_height, gap=in_hole[rows])
    return splits


def _same_hole(near_top: Tensor, near_height: Tensor, *, gap: Tensor) -> Tensor:
    """Return which tiles have two of the gaps `[B, P, 6]` in one connected set of empty hexes, `[B, P]` bool.

    Walks along the sides of uppermost tiles that face an empty hex. Each such side has one successor
    counter-clockwise, so every set of empty hexes is one cycle of sides. Pointer doubling gives all sides of
    a cycle its smallest number.
    """
    games, tiles, _ = gap.shape
    side = torch.arange(6 * tiles, device=gap.device).view(tiles, 6)
    turned = torch.arange(1, 7, device=gap.device) % 6
    following_top = near_top[..., turned]
    corner = following_top * 6 + (turned - 2) % 6
    straight = (side - side % 6) + turned
    after = torch.where(near_height[..., turned] > 0, corner, straight).flatten(1)
    label = side.flatten().expand(games, -1)
    for _ in range(8):
        label = torch.minimum(label, label.gather(1, after))
        after = after.gather(1, after)
    label = label.view_as(gap)
    pairs = [(first, second) for first in range(6) for second in range(first + 2, 6)]
    same = [
        gap[..., first] & gap[..., second] & (label[..., first] == label[..., second])
        for first, second in pairs
    ]
    return torch.stack(same).any(0)
