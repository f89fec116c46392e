"""Initial states of Hive: the empty board, or positions after a few random plies."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.hive import dynamics
from edgewise.systems.hive.pieces import Hand


def draw_games(
    opening_plies: Tensor,
    hand: Hand,
    *,
    most_plies: int,
    max_moves: int,
    window: int,
    generator: torch.Generator,
    kept_plies: int = 0,
) -> dict[str, Tensor]:
    """Sample one game per entry of `opening_plies` `[B]` int64, after so many random plies.

    A ply that would end the game is not played.

    Args:
        opening_plies: random plies of each game.
        hand: of both players.
        most_plies: the largest possible value of `opening_plies`.
        max_moves: capacity of the list of moves.
        window: number of positions in which repetitions are counted.
        generator: random generator of the openings.
        kept_plies: number of plies whose moves are kept in the state.
    """
    count, device = len(opening_plies), opening_plies.device
    game = dynamics.new_games(
        count, hand, max_moves=max_moves, window=window, kept_plies=kept_plies, device=device
    )
    for ply in range(most_plies):
        after = dynamics.advance(game, random_move(game["moves"], generator), hand)
        kept = (ply < opening_plies) & ~dynamics.is_over(after, hand)
        game = {
            name: torch.where(kept.view(-1, *[1] * (value.ndim - 1)), value, game[name])
            for name, value in after.items()
        }
    return game


def random_move(moves: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Sample one of the listed moves of each game, `[B, K, 3]` to `[B, 3]`."""
    count = (moves[..., 0] != dynamics.ABSENT).sum(-1)
    chance = torch.rand(len(moves), generator=generator, device=moves.device)
    place = (chance * count).long().clamp(max=count - 1)
    return moves.gather(1, place.view(-1, 1, 1).expand(-1, 1, 3)).squeeze(1)
