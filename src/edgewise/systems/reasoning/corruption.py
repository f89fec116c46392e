"""Negative sampling: replace the head or tail of a true query so that no known triple results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.knowledge.index import FactIndex
from edgewise.systems.reasoning.knowledge.placement import to_device

TRIES = 8
"""Replacements drawn per query. If all of them are known triples, the query stays unchanged and true."""

Side = Literal["head", "tail", "both"]


class Corruption:
    """Sampler of false queries, filtered against every triple of every split.

    Args:
        known: `[n, 3]`, all true triples.
        num_predicates: P.
        num_entities: E.
        domains: entities by domain. An entity without a domain can be replaced by any entity.
    """

    def __init__(
        self,
        known: Tensor,
        *,
        num_predicates: int,
        num_entities: int,
        domains: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.known = FactIndex(known, num_predicates=num_predicates, num_entities=num_entities)
        everyone = range(1, num_entities + 1)
        groups = [list(everyone), *(list(members) for members in (domains or {}).values())]
        self.members = torch.tensor([entity for group in groups for entity in group])
        sizes = torch.tensor([len(group) for group in groups])
        first = sizes.cumsum(0) - sizes
        group_of, rank = torch.zeros(num_entities + 1, dtype=torch.int64), torch.arange(-1, num_entities)
        for number, group in enumerate(groups):
            group_of[group], rank[group] = number, torch.arange(len(group))
        self.first, self.size, self.rank = first[group_of], sizes[group_of], rank

    @classmethod
    def of(cls, dataset: Dataset) -> Corruption:
        """Build the sampler for a dataset."""
        words = dataset.vocabulary
        return cls(
            dataset.known(),
            num_predicates=words.num_predicates,
            num_entities=words.num_entities,
            domains=dataset.domains,
        )

    def to(self, device: torch.device | str) -> Corruption:
        """Return a copy on another device."""
        moved = object.__new__(Corruption)
        for name, value in vars(self).items():
            setattr(moved, name, to_device(value, device) if isinstance(value, Tensor) else value.to(device))
        return moved

    def draw(self, queries: Tensor, *, side: Side, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sample a false query for each of `queries` `[n, 3]`; also return whether one was found, `[n]` bool.

        With `both`, head or tail is replaced with equal probability.
        """
        count, device = len(queries), queries.device
        on_tail = torch.full((count,), side == "tail", device=device)
        if side == "both":
            on_tail = torch.rand(count, generator=generator, device=device) < 0.5
        chance = torch.rand(count, TRIES, generator=generator, device=device)
        old = torch.where(on_tail, queries[:, 2], queries[:, 1])
        new = self._others(old.unsqueeze(-1), chance)
        drawn = queries.unsqueeze(1).repeat(1, TRIES, 1)
        drawn[..., 1] = torch.where(on_tail.unsqueeze(-1), drawn[..., 1], new)
        drawn[..., 2] = torch.where(on_tail.unsqueeze(-1), new, drawn[..., 2])
        free = ~self.known.contains(drawn) & (self.size[old] > 1).unsqueeze(-1)
        choice = free.to(torch.uint8).argmax(-1)
        found = free.any(-1)
        picked = drawn[torch.arange(count, device=device), choice]
        return torch.where(found.unsqueeze(-1), picked, queries), found

    def candidates(self, query: Tensor, *, side: Literal["head", "tail"]) -> Tensor:
        """Return all false queries that replace one side of `query` `[3]`, `[k, 3]`."""
        place = 1 if side == "head" else 2
        old = int(query[place])
        first, size = int(self.first[old]), int(self.size[old])
        drawn = query.repeat(size, 1)
        drawn[:, place] = self.members[first : first + size]
        return drawn[~self.known.contains(drawn) & (drawn[:, place] != old)]

    def _others(self, old: Tensor, chance: Tensor) -> Tensor:
        """Choose entities of the same group other than `old` `[n, 1]` by `chance` `[n, k]` in [0, 1)."""
        among = (self.size[old] - 1).clamp(min=1)
        number = (chance * among).long().minimum(among - 1)
        number = number + (number >= self.rank[old]).long()
        return self.members[self.first[old] + number.minimum(self.size[old] - 1)]
