"""Minimum-cost assignment for a batch of worlds."""

from __future__ import annotations

import torch
from torch import Tensor


def min_cost_matching(cost: Tensor) -> Tensor:
    """Compute the assignment of rows to distinct columns with the lowest total cost.

    This is the Hungarian method by shortest augmenting paths (Kuhn 1955; Jonker and Volgenant 1987), batched
    and without synchronising the device: n rows always take n² / 2 steps.

    Args:
        cost: `[B, n, n]`, finite.

    Returns:
        `[B, n]` int64, the column of each row.
    """
    count, size = cost.shape[:2]
    # Column 0 is a virtual column: it holds the row to be assigned, and augmenting paths end there.
    cost = torch.nn.functional.pad(cost, (1, 0, 1, 0))
    row_price, column_price = cost.new_zeros(count, size + 1), cost.new_zeros(count, size + 1)
    owner = torch.zeros(count, size + 1, dtype=torch.int64, device=cost.device)
    for row in range(1, size + 1):
        owner[:, 0] = row
        column, came_from = _cheapest_path(cost, owner, row_price, column_price, longest=row)
        for _ in range(row):
            before = came_from.gather(1, column)
            owner = owner.scatter(1, column, owner.gather(1, before))
            column = torch.where(column > 0, before, 0)
    return owner[:, 1:].argsort(-1)


def _cheapest_path(
    cost: Tensor, owner: Tensor, row_price: Tensor, column_price: Tensor, *, longest: int
) -> tuple[Tensor, Tensor]:
    """Return the free column `[B, 1]` at the end of the cheapest path from column 0, and all predecessors.

    Prices are updated in place; a world whose path is complete does not change any more.
    """
    seen = torch.zeros_like(owner, dtype=torch.bool)
    least = torch.full_like(column_price, torch.inf)
    came_from = torch.zeros_like(owner)
    column = torch.zeros_like(owner[:, :1])
    for _ in range(longest):
        at = owner.gather(1, column)
        going = at > 0
        seen = seen.scatter(1, column, seen.gather(1, column) | going)
        row = at.unsqueeze(-1).expand(-1, -1, cost.shape[-1])
        reduced = cost.gather(1, row).squeeze(1) - row_price.gather(1, at) - column_price
        better = going & ~seen & (reduced < least)
        least = torch.where(better, reduced, least)
        came_from = torch.where(better, column, came_from)
        step, nearest = least.masked_fill(seen, torch.inf).min(-1, keepdim=True)
        step = torch.where(going, step, 0.0)
        row_price.scatter_add_(1, owner.masked_fill(~seen, 0), torch.where(seen, step, 0.0))
        column_price -= torch.where(seen, step, 0.0)
        least = torch.where(seen, least, least - step)
        column = torch.where(going, nearest, column)
    return column, came_from
