"""Initial states of Hex: empty boards, or boards with a few random stones."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.hex import dynamics


def draw_games(
    size: Tensor,
    *,
    capacity: int,
    tables: Tensor,
    opening_plies: Tensor,
    most_plies: int,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Sample one game per entry of `size`, with random opening stones.

    A stone that would win, or for which there is no free cell, is not placed. Its player then moves first.

    Args:
        size: `[B]` int64, sides of the boards.
        capacity: the largest side.
        tables: `[K, N, 6]`, neighbour tables, indexed by side - SMALLEST.
        opening_plies: `[B]` int64, random stones per board.
        most_plies: the largest possible value of `opening_plies`.
        generator: random generator of the openings.
    """
    count, device = len(size), size.device
    stones, chains = dynamics.empty_boards(count, capacity, device)
    game = {"size": size, "stones": stones, "chains": chains}
    game["player"] = torch.zeros(count, dtype=torch.int64, device=device)
    game["swapped"] = torch.zeros(count, dtype=torch.bool, device=device)
    for ply in range(most_plies):
        free = free_cells(game["stones"], size)
        cell = torch.rand(free.shape, generator=generator, device=device).masked_fill(~free, -1.0).argmax(-1)
        near = tables[size - 2, cell]
        stones, chains = dynamics.place(
            game["stones"], game["chains"], cell=cell, player=game["player"], neighbours=near
        )
        kept = (ply < opening_plies) & free.any(-1) & ~dynamics.has_won(chains, game["player"])
        row = kept.unsqueeze(-1)
        game["stones"] = torch.where(row, stones, game["stones"])
        game["chains"] = torch.where(row, chains, game["chains"])
        game["player"] = torch.where(kept, 1 - game["player"], game["player"])
    game["plies"] = (game["stones"][:, :-4] != dynamics.EMPTY).sum(-1)
    return game


def free_cells(stones: Tensor, size: Tensor) -> Tensor:
    """Return the cells without a stone, `[B, N]` bool; borders are never free."""
    cell = torch.arange(stones.shape[-1], device=stones.device)
    return (stones == dynamics.EMPTY) & (cell < size.square().unsqueeze(-1))
