"""The table of legal moves, and how moves of listed tiles are marked in it.

The table `[B, S, W]` has a row per tile and a column per node; S is H, or P where Pillbugs can throw the
opponent's tiles. W is the next multiple of 8 above the number of nodes N, so that eight entries can be read
as one number. Column N collects what is not a move.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.hive import windows
from edgewise.systems.hive.board import Board, around


@dataclass(frozen=True)
class Movers:
    """Tiles of one kind of movement that may move, as rows of a list or all of them.

    Attributes:
        game: `[R]` int64.
        slot: `[R]` int64.
        ready: `[R]` bool; all true where the list holds only tiles that may move.
    """

    game: Tensor
    slot: Tensor
    ready: Tensor


def of_movers(movers: Movers, per_tile: Tensor) -> Tensor:
    """Return the entries of the movers, `[R, ...]`, of what each tile has, `[B, P, ...]`."""
    return per_tile.flatten(0, 1).index_select(0, movers.game * per_tile.shape[1] + movers.slot)


def table_row(board: Board, cells: Tensor) -> Tensor:
    """Return the empty hexes `[..., C]` bool as a row of the table, eight columns in a number."""
    tiles, nodes = board.level.shape[1], board.nodes
    return torch.nn.functional.pad(cells, (tiles, 8 - nodes % 8)).view(torch.int64)


def rows_of(chosen: Tensor, row: Tensor) -> Tensor:
    """Return a part of the table with the rows of `table_row` for the tiles `[B, K]` that are chosen."""
    return (-chosen.long().unsqueeze(-1) & row.unsqueeze(1)).view(torch.bool)


def mark(moves: Tensor, board: Board, movers: Movers, node: Tensor, reached: Tensor) -> None:
    """Mark moves to the nodes `[R, K]` where `reached` `[R, K]`."""
    node = torch.where(reached & movers.ready.unsqueeze(-1), node, board.nodes)
    row = (movers.game * moves.shape[1] + movers.slot) * moves.shape[2]
    moves.view(-1).scatter_(0, (row.unsqueeze(-1) + node).flatten(), True)


def mark_around(moves: Tensor, board: Board, movers: Movers, reached: Tensor) -> None:
    """Mark moves to the hexes around the movers where `reached` `[R, 6]`."""
    hexes = around(board, movers.game, movers.slot) + (movers.game * board.node.shape[1]).unsqueeze(-1)
    node = board.node.flatten().index_select(0, hexes.flatten()).view_as(hexes)
    mark(moves, board, movers, node, reached)


def mark_rows(moves: Tensor, movers: Movers, rows: Tensor) -> None:
    """Add rows of the table `[R, W / 8]`, as of `table_row`, for the movers."""
    table = moves.view(torch.int64).flatten(0, 1)
    place = movers.game * moves.shape[1] + movers.slot
    rows = table.index_select(0, place) | rows & -movers.ready.long().unsqueeze(-1)
    table.index_copy_(0, place, rows)


def mark_window(moves: Tensor, board: Board, movers: Movers, ends: Tensor) -> None:
    """Mark moves to the empty hexes in the windows `ends` `[R]` around the movers."""
    start, cells = of_movers(movers, board.hex), board.empty.index_select(0, movers.game)
    found = windows.contains(ends, start, cells) & board.empty_mask.index_select(0, movers.game)
    mark_rows(moves, movers, table_row(board, found))
