"""Queries to prove: true ones from a list, and between them false ones made of true ones."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.reasoning.corruption import Corruption, Side


def draw_queries(
    pool: Tensor,
    count: int,
    *,
    negative_ratio: int,
    corruption: Corruption,
    side: Side,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """`count` queries `[count, 3]` and whether they are true `[count]`.

    One true query is followed by `negative_ratio` false ones, round and round, from a random point of the
    round on. A false query is a random true one corrupted; where that fails, it stays true and says so.
    """
    device = pool.device
    number = torch.randint(len(pool), (count,), generator=generator, device=device)
    queries = pool[number]
    label = torch.ones(count, dtype=torch.bool, device=device)
    if not negative_ratio:
        return queries, label
    turn = torch.randint(negative_ratio + 1, (1,), generator=generator, device=device)
    label = (torch.arange(count, device=device) + turn) % (negative_ratio + 1) == 0
    false, found = corruption.draw(queries, side=side, generator=generator)
    label = label | ~found
    return torch.where(label.unsqueeze(-1), queries, false), label


def concluded(queries: Tensor, head_predicates: Tensor) -> Tensor:
    """The queries `[n, 3]` whose predicate is one of those that rules conclude, `[k]`."""
    return queries[torch.isin(queries[:, 0], head_predicates)]


def within_reach(facts: Tensor, withheld: float) -> Tensor:
    """The rows `[k]` of facts `[n, 3]` without a share of them, which is drawn once and for all."""
    draw = torch.rand(len(facts), generator=torch.Generator().manual_seed(len(facts)))
    return (draw >= withheld).nonzero().squeeze(-1)
