"""The rules of Hive as batched tensor functions: positions, legal moves, plies, ends and repetitions.

A position of B games with P = 2 H tiles is a mapping of tensors. The first H slots are the first player's
(white) tiles, in the order of `Hand.kinds`, the others the second player's (black).

| entry | shape | meaning |
|---|---|---|
| `q`, `r` | `[B, P]` int16 | axial coordinates; 0 in hand |
| `level` | `[B, P]` int8 | tiles below the tile; -1 in hand |
| `player` | `[B]` int64 | who is to move |
| `last` | `[B]` int64 | slot of the tile that moved in the previous ply; -1 for none |
| `plies` | `[B]` int64 | plies played, passes included |
| `moves` | `[B, K, 3]` int16 | legal moves: slot, q, r; slot -1 where there is none, P for a pass |
| `history` | `[B, W]` int64 | hashes of the latest positions, the newest last |
| `played` | `[B, T, 3]` int16 | optional: all moves of the game, by ply; those beyond T are not kept |
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from edgewise.scale.devices import constant
from edgewise.systems.hive.bitboards import LOW, SHIFT, can_read
from edgewise.systems.hive.board import Board, build_board, ragged
from edgewise.systems.hive.movement import move_table
from edgewise.systems.hive.pieces import Hand

Position = Mapping[str, Tensor]
ABSENT = -1
REPETITIONS = 3
"""A position that occurs so often is a draw."""
_PRIMES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)


def new_games(
    count: int,
    hand: Hand,
    *,
    max_moves: int,
    window: int,
    kept_plies: int = 0,
    device: torch.device | None = None,
) -> dict[str, Tensor]:
    """Return `count` games before the first ply.

    Args:
        count: number of games B.
        hand: of both players.
        max_moves: capacity K of the list of moves.
        window: number of positions W in which repetitions are counted.
        kept_plies: number of plies T whose moves are kept; 0 for no entry `played`.
        device: of all tensors.
    """
    tiles = hand.tiles
    start = {
        "q": torch.zeros(count, tiles, dtype=torch.int16, device=device),
        "r": torch.zeros(count, tiles, dtype=torch.int16, device=device),
        "level": torch.full((count, tiles), -1, dtype=torch.int8, device=device),
        "player": torch.zeros(count, dtype=torch.int64, device=device),
        "last": torch.full((count,), -1, dtype=torch.int64, device=device),
        "plies": torch.zeros(count, dtype=torch.int64, device=device),
        "history": torch.zeros(count, window, dtype=torch.int64, device=device),
    }
    if kept_plies:
        start["played"] = torch.full((count, kept_plies, 3), ABSENT, dtype=torch.int16, device=device)
    return {**start, "moves": list_moves(start, hand, max_moves=max_moves)}


def swap_seats(per_tile: Tensor, player: Tensor) -> Tensor:
    """Return `[B, P]` with the tiles of `player` `[B]` first; applied twice, it changes nothing."""
    return torch.where((player == 1).unsqueeze(-1), per_tile.roll(per_tile.shape[1] // 2, 1), per_tile)


def swap_slot(slot: Tensor, player: Tensor, tiles: int) -> Tensor:
    """Return the slot `[B, ...]` of a tile after `swap_seats`; numbers that are no slot stay."""
    player = player.view(-1, *[1] * (slot.ndim - 1))
    is_slot = (slot >= 0) & (slot < tiles)
    return torch.where(is_slot & (player == 1), (slot + tiles // 2) % tiles, slot)


def mover_board(position: Position) -> Board:
    """Build the boards of a position, with the mover's tiles first."""
    q, r, level = (swap_seats(position[name], position["player"]).long() for name in ("q", "r", "level"))
    return build_board(q, r, level)


def mover_table(position: Position, board: Board, hand: Hand) -> Tensor:
    """Return the legal moves from the mover's view, `[B, S, W]` bool; see `move_table`."""
    player = position["player"]
    last = swap_slot(position["last"], player, hand.tiles)
    return move_table(board, hand, turn=position["plies"] // 2, last=last)


def list_moves(position: Position, hand: Hand, *, max_moves: int) -> Tensor:
    """Return the legal moves of a position, `[B, K, 3]` int16, K = `max_moves`.

    They are in the order of the mover's tiles, then the opponent's. A game without a move has a pass.

    Raises:
        OverflowError: a game has more moves; where values cannot be read, it is a device-side assertion.
    """
    board = mover_board(position)
    table = mover_table(position, board, hand)
    listing = _listing if can_read(table) else _whole_listing
    game, tile, node, place = listing(table, max_moves)
    hexes = torch.cat((board.hex, board.empty), 1)
    q = (hexes & LOW) + board.left.unsqueeze(-1)
    r = (hexes >> SHIFT) + board.upper.unsqueeze(-1)
    node = node + game * hexes.shape[1]
    tile = tile + position["player"].index_select(0, game) * hand.size
    tile = torch.where(tile < hand.tiles, tile, tile - hand.tiles)
    shape = (len(table) * max_moves + 1, 3)
    listed = torch.full(shape, ABSENT, dtype=torch.int16, device=tile.device)
    listed[:, 0].scatter_(0, place, tile.to(torch.int16))
    for axis, coordinate in enumerate((q, r), 1):
        of_node = coordinate.to(torch.int16).flatten()
        listed[:, axis].scatter_(0, place, of_node.index_select(0, node))
    listed = listed[:-1].view(-1, max_moves, 3)
    listed[:, 0, 0] = listed[:, 0, 0].masked_fill(listed[:, 0, 0] == ABSENT, hand.tiles)
    return listed


Listing = tuple[Tensor, Tensor, Tensor, Tensor]
"""Game, tile and node of each move, and its place in a list `[B * K]`; the last place is for what is none."""


def _listing(table: Tensor, most: int) -> Listing:
    """List the moves of a table `[B, S, W]`; W is a multiple of 8.

    Most tiles have no move. So tiles are chosen first, eight entries of the table at a time.

    Raises:
        OverflowError: a game has more than `most` moves.
    """
    games, sources, width = table.shape
    some = (table.view(torch.int64) != 0).any(-1).flatten().nonzero().squeeze(-1)
    rows = table.view(torch.int64).flatten(0, 1).index_select(0, some).view(torch.bool)
    count = rows.sum(-1, dtype=torch.int32)
    game = some // sources
    of_game = torch.zeros(games, dtype=torch.int64).index_add_(0, game, count.long())
    if games and int(of_game.max()) > most:
        raise OverflowError(f"a position has {int(of_game.max())} legal moves, but the list holds {most}")
    first = torch.arange(games) * most - (of_game.cumsum(0) - of_game)
    found = rows.view(-1).nonzero().squeeze(-1)
    row = torch.repeat_interleave(count, output_size=len(found))
    place = torch.arange(len(found)) + first.index_select(0, game).index_select(0, row)
    tile = (some - game * sources).index_select(0, row)
    return game.index_select(0, row), tile, found - row * width, place


def _whole_listing(table: Tensor, most: int) -> Listing:
    """List all entries of a table `[B, S, W]` without reading values; see `_listing`."""
    games, _, width = table.shape
    game, column, place, count = ragged(table.flatten(1))
    torch._assert_async((count <= most).all(), "a position has more moves than the list holds")
    none = place < 0
    place = torch.where(none, games * most, game * most + place)
    return game, column // width, (column % width).masked_fill(none, 0), place


def play(position: Position, move: Tensor, hand: Hand) -> dict[str, Tensor]:
    """Play one move `[B, 3]` int16, as in `moves`, and return the next position without its moves."""
    slot, q, r = move.long().unbind(-1)
    q, r = q.unsqueeze(-1), r.unsqueeze(-1)
    moved = torch.arange(hand.tiles, device=move.device) == slot.unsqueeze(-1)
    there = (position["q"] == q) & (position["r"] == r) & (position["level"] >= 0)
    height = there.sum(-1, keepdim=True).to(torch.int8)
    after = {
        "q": torch.where(moved, q.to(torch.int16), position["q"]),
        "r": torch.where(moved, r.to(torch.int16), position["r"]),
        "level": torch.where(moved, height, position["level"]),
        "player": 1 - position["player"],
        "last": torch.where(slot < hand.tiles, slot, -1),
        "plies": position["plies"] + 1,
    }
    key = position_key(after, hand)
    after["history"] = torch.cat((position["history"][:, 1:], key.unsqueeze(-1)), 1)
    if "played" in position:
        played = position["played"]
        ply = torch.arange(played.shape[1], device=move.device) == position["plies"].unsqueeze(-1)
        after["played"] = torch.where(ply.unsqueeze(-1), move.unsqueeze(1), played)
    return after


def advance(position: Position, move: Tensor, hand: Hand) -> dict[str, Tensor]:
    """Play one move `[B, 3]` and return the next position with its legal moves."""
    after = play(position, move, hand)
    return {**after, "moves": list_moves(after, hand, max_moves=position["moves"].shape[1])}


def around_queens(position: Position, hand: Hand) -> Tensor:
    """Count the occupied hexes around the queens of white and black, `[B, 2]` int64; 0 in hand."""
    queens = constant((hand.queen, hand.size + hand.queen), position["q"])
    q = position["q"].unsqueeze(1) - position["q"][:, queens].unsqueeze(-1)
    r = position["r"].unsqueeze(1) - position["r"][:, queens].unsqueeze(-1)
    distance = torch.maximum(torch.maximum(q.abs(), r.abs()), (q + r).abs())
    ground = (position["level"] == 0).unsqueeze(1)
    down = position["level"][:, queens] >= 0
    return ((distance == 1) & ground & down.unsqueeze(-1)).sum(-1)


def surrounded(position: Position, hand: Hand) -> Tensor:
    """Return whether the queens of white and black are surrounded, `[B, 2]` bool."""
    return around_queens(position, hand) == 6


def result(position: Position, hand: Hand, *, player: Tensor) -> Tensor:
    """Return 1 where `player` `[B]` has won, -1 where it has lost, else 0, `[B]` float."""
    white, black = surrounded(position, hand).float().unbind(-1)
    return torch.where(player == 0, black - white, white - black)


def pressure(position: Position, hand: Hand, *, player: Tensor) -> Tensor:
    """Return the occupied share of the hexes around the opponent's queen minus that around the own, `[B]`."""
    white, black = (around_queens(position, hand) / 6).unbind(-1)
    return torch.where(player == 0, black - white, white - black)


def is_over(position: Position, hand: Hand) -> Tensor:
    """Return whether a queen is surrounded or the position has occurred for the third time, `[B]` bool."""
    return surrounded(position, hand).any(-1) | (repetitions(position) >= REPETITIONS)


def repetitions(position: Position) -> Tensor:
    """Count how often the position has occurred in the window, itself included, `[B]` int64.

    Positions are the same if tiles of the same kind and player lie on the same hexes at the same levels, and
    the same player is to move.
    """
    history = position["history"]
    return (history == history[:, -1:]).sum(-1).where(history[:, -1] != 0, 1)


def position_key(position: Position, hand: Hand) -> Tensor:
    """Hash tiles and player to move, `[B]` int64; equal tiles may be exchanged."""
    kind = constant((*hand.kinds, *(8 + kind for kind in hand.kinds)), position["q"])
    mixed = tile_key(kind, position["q"], position["r"], position["level"])
    return mixed.sum(-1) + player_key(position["player"])


def tile_key(kind: Tensor, q: Tensor, r: Tensor, level: Tensor) -> Tensor:
    """Hash tiles by their place, int64; 0 in hand. The kind of a black tile is greater by 8."""
    a, b, c, d = (prime - 2**64 if prime >= 2**63 else prime for prime in _PRIMES)
    mixed = (kind + 1) * a + q.long() * b + r.long() * c
    return _scramble(mixed + level.long() * d).masked_fill(level < 0, 0)


def player_key(player: Tensor) -> Tensor:
    """Hash the player to move, int64; `position_key` is this and the sum of its tiles' keys."""
    d = _PRIMES[3]
    return (player + 1) * (d - 2**64 if d >= 2**63 else d)


def _scramble(number: Tensor) -> Tensor:
    """Mix the bits of int64 numbers; sums of the results rarely coincide."""
    a, b, c, _ = (prime - 2**64 if prime >= 2**63 else prime for prime in _PRIMES)
    number = (number ^ (number >> 32)) * a
    number = (number ^ (number >> 29)) * b
    return (number ^ (number >> 32)) * c
