"""Sampling of queries: true ones, and false ones made by corruption."""

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
    """Sample queries `[count, 3]` and their labels `[count]` bool.

    One true query is followed by `negative_ratio` false ones, cyclically, from a random start. A false query
    is a corrupted random true one. If the corruption fails, the query stays true and is labelled true.
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


def queries_with_rules(queries: Tensor, head_predicates: Tensor) -> Tensor:
    """Return the queries `[n, 3]` whose predicate is in `head_predicates` `[k]`, the heads of rules."""
    return queries[torch.isin(queries[:, 0], head_predicates)]


def available_facts(facts: Tensor, withheld: float) -> Tensor:
    """Return the rows `[k]` of facts `[n, 3]` that are not withheld; always the same for the same facts."""
    draw = torch.rand(len(facts), generator=torch.Generator().manual_seed(len(facts)))
    return (draw >= withheld).nonzero().squeeze(-1)
