"""Count all sequences of legal plies up to a depth, the usual test of a move generator."""

from __future__ import annotations

from torch import Tensor

from edgewise.systems.hive import dynamics
from edgewise.systems.hive.pieces import Hand

MOST_MOVES = 512
"""More moves than a position within reach has."""
BATCH = 4096
"""Positions that are expanded together."""


def perft(hand: Hand, depth: int) -> list[int]:
    """Return the number of sequences of 1, 2, ... `depth` plies.

    Equal tiles in hand count once, and a pass counts as a ply. A game that has ended has no further plies.
    """
    start = dynamics.new_games(1, hand, max_moves=MOST_MOVES, window=1)
    counts = [0] * depth
    _count(_reduced(start), hand, depth, counts)
    return counts


def _reduced(position: dynamics.Position) -> dict[str, Tensor]:
    return {name: value for name, value in position.items() if name != "moves"}


def _count(position: dict[str, Tensor], hand: Hand, depth: int, counts: list[int]) -> None:
    """Add the plies of these positions, and of those behind them, to `counts`, depth first in batches."""
    going_on = ~dynamics.surrounded(position, hand).any(-1)
    if not bool(going_on.all()):
        position = {name: value[going_on] for name, value in position.items()}
    if not len(position["q"]):
        return
    if depth == 1:
        table = dynamics.mover_table(position, dynamics.mover_board(position), hand)
        counts[-1] += int(table.flatten(1).sum(-1).clamp(min=1).sum())
        return
    moves = dynamics.list_moves(position, hand, max_moves=MOST_MOVES)
    game, place = (moves[..., 0] >= 0).nonzero(as_tuple=True)
    counts[-depth] += len(game)
    chosen = moves[game, place]
    for rows, move in zip(game.split(BATCH), chosen.split(BATCH), strict=True):
        before = {name: value[rows] for name, value in position.items()}
        _count(dynamics.play(before, move, hand), hand, depth - 1, counts)
