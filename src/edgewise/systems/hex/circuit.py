"""A board as an electrical circuit for each player: how much current each cell carries between its two sides.

A player's stones and sides conduct, free cells have a resistance of 1, and the opponent's stones insulate.
The resistance between the two sides then measures how far a player is from a connection, over all paths at
once, and the current through a cell how much depends on it: V. Anshelevich, A hierarchical approach to
computer Hex, 2002 (https://doi.org/10.1016/S0004-3702(01)00154-0), after C. Shannon.
"""

from __future__ import annotations

from math import isqrt

import torch
from torch import Tensor

from edgewise.scale.devices import constant
from edgewise.systems.hex.dynamics import EMPTY, FIRST, SECOND

WIRE = 0.02
"""Resistance of a stone, and of a side, for its own player."""
LEAK = 1e-4
"""Conductance from every cell to the far side, so that cells without a connection have a potential too."""


def currents(stones: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the share of each player's current through each node, and its resistance between its sides.

    Args:
        stones: `[B, N]` int8.
        size: `[B]` int64, sides of the boards.

    Returns:
        shares: `[B, N, 2]` in [0, 1], 0 at borders and at the opponent's stones.
        resistance: `[B, 2]`, at least a few times `WIRE`, and large where there is no path.
    """
    count, nodes = stones.shape
    node, exists = _rows_and_columns(size, isqrt(nodes - 4))
    placed = stones.gather(1, node.flatten(1)).view_as(node).unsqueeze(1)
    colour = constant((FIRST, SECOND), stones, dtype=stones.dtype).view(2, 1, 1)
    free_or_theirs = torch.where(placed == EMPTY, 1.0, torch.inf)
    resistance = torch.where(placed == colour, WIRE, free_or_theirs)
    resistance = resistance.masked_fill(~exists.unsqueeze(1), torch.inf)
    # Reflected at the long diagonal, the second player's board is one from top to bottom.
    first, second = resistance.unbind(1)
    downwards = torch.stack((first, second.mT), 1).flatten(0, 1)
    last = torch.arange(downwards.shape[-1], device=size.device) == (size - 1).unsqueeze(-1)
    through, total = _flow(downwards, last.repeat_interleave(2, 0))
    shares = (through / total.view(-1, 1, 1)).unflatten(0, (count, 2))
    shares = torch.stack((shares[:, 0], shares[:, 1].mT), -1) * exists.unsqueeze(-1)
    found = shares.new_zeros(count, nodes, 2)
    found.scatter_add_(1, node.flatten(1).unsqueeze(-1).expand(-1, -1, 2), shares.flatten(1, 2))
    return found, 1 / total.view(count, 2)


def _rows_and_columns(size: Tensor, capacity: int) -> tuple[Tensor, Tensor]:
    """Return the node at each row and column, `[B, n, n]`, 0 beyond the board, and whether there is one."""
    line = torch.arange(capacity, device=size.device)
    side = size.view(-1, 1, 1)
    exists = (line.view(-1, 1) < side) & (line < side)
    return torch.where(exists, line.view(-1, 1) * side + line, 0), exists


def _flow(resistance: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the currents through the cells, `[M, n, n]`, and in total, `[M]`, at a voltage of 1.

    Args:
        resistance: `[M, n, n]` of each cell; the current enters at row 0.
        last: `[M, n]` bool, the row at which it leaves.
    """
    side = 1 / (resistance[:, :, :-1] + resistance[:, :, 1:])
    down = 1 / (resistance[:, :-1] + resistance[:, 1:])
    slant = 1 / (resistance[:, :-1, 1:] + resistance[:, 1:, :-1])
    entry = torch.zeros_like(resistance)
    entry[:, 0] = 1 / (resistance[:, 0] + WIRE)
    leave = last.unsqueeze(-1) / (resistance + WIRE)
    volt = _potentials(side, down, slant, entry=entry, leave=leave)
    into = entry * (1 - volt)
    through = into.abs() + (leave * volt).abs()
    for current, here, there in (
        (side * (volt[:, :, :-1] - volt[:, :, 1:]), through[:, :, :-1], through[:, :, 1:]),
        (down * (volt[:, :-1] - volt[:, 1:]), through[:, :-1], through[:, 1:]),
        (slant * (volt[:, :-1, 1:] - volt[:, 1:, :-1]), through[:, :-1, 1:], through[:, 1:, :-1]),
    ):
        here += current.abs()
        there += current.abs()
    return through / 2, into.sum((1, 2)).clamp(min=LEAK)


def _potentials(side: Tensor, down: Tensor, slant: Tensor, *, entry: Tensor, leave: Tensor) -> Tensor:
    """Solve Kirchhoff's equations row by row (block elimination), `[M, n, n]`; all arguments conduct."""
    rows = entry.shape[1]
    diagonal = entry + leave + LEAK
    diagonal[:, :, :-1] += side
    diagonal[:, :, 1:] += side
    diagonal[:, :-1] += down
    diagonal[:, 1:] += down
    diagonal[:, :-1, 1:] += slant
    diagonal[:, 1:, :-1] += slant
    within = torch.diag_embed(diagonal) - torch.diag_embed(side, 1) - torch.diag_embed(side, -1)
    across = -torch.diag_embed(down) - torch.diag_embed(slant, -1)
    inverse, sources = [torch.linalg.inv_ex(within[:, 0])[0]], [entry[:, 0].unsqueeze(-1)]
    for row in range(1, rows):
        carried = across[:, row - 1].mT @ inverse[-1]
        inverse.append(torch.linalg.inv_ex(within[:, row] - carried @ across[:, row - 1])[0])
        sources.append(entry[:, row].unsqueeze(-1) - carried @ sources[-1])
    volt = [inverse[-1] @ sources[-1]]
    for row in range(rows - 2, -1, -1):
        volt.append(inverse[row] @ (sources[row] - across[:, row] @ volt[-1]))
    return torch.stack(volt[::-1], 1).squeeze(-1)
