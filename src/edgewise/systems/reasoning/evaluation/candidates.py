"""Candidate lists of queries: the true atom first, then false atoms that are in no split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from edgewise.systems.reasoning.knowledge.known import KnownAnswers

Side = Literal["head", "tail"]
COLUMN = {"head": 1, "tail": 2}
CELLS = 20_000_000
"""Maximum number of entries of a table of queries by entities."""


@dataclass(frozen=True)
class Candidates:
    """One list per query and side.

    Args:
        atoms: `[Q, K, 3]`; the first of each list is the true atom, padding is zeros.
        exists: `[Q, K]` bool, which candidates exist.
        query: `[Q]`, the row of the query of each list.
        side: `[Q]`, the replaced column: 1 for heads, 2 for tails.
    """

    atoms: Tensor
    exists: Tensor
    query: Tensor
    side: Tensor

    def __len__(self) -> int:
        return len(self.atoms)


def draw_candidates(
    queries: Tensor,
    known: Tensor,
    *,
    num_entities: int,
    sides: Sequence[Side] = ("head", "tail"),
    negatives: int | None = None,
    domains: Iterable[Sequence[int]] = (),
    seed: int = 0,
) -> Candidates:
    """Sample candidate lists for `queries [P, 3]`, filtered by the atoms `known [n, 3]`.

    Args:
        queries: true atoms.
        known: atoms that must not be among the false ones.
        num_entities: largest id of an entity.
        sides: which argument is replaced; one list per side.
        negatives: false atoms per list, sampled without replacement; None for all.
        domains: entities are replaced only by entities of the same domain.
        seed: random seed.
    """
    generator = torch.Generator().manual_seed(seed)
    domain = _domain_of(domains, num_entities)
    lists = [
        _one_side(
            queries, known, COLUMN[side], num_entities, negatives=negatives, domain=domain, draw=generator
        )
        for side in sides
    ]
    width = max(atoms.shape[1] for atoms in lists)
    atoms = torch.cat([_pad_lists(part, width) for part in lists])
    return Candidates(
        atoms=atoms,
        exists=atoms[..., 0] > 0,
        query=torch.arange(len(queries)).repeat(len(sides)),
        side=torch.tensor([COLUMN[side] for side in sides]).repeat_interleave(len(queries)),
    )


def _one_side(
    queries: Tensor,
    known: Tensor,
    column: int,
    num_entities: int,
    *,
    negatives: int | None,
    domain: Tensor | None,
    draw: torch.Generator,
) -> Tensor:
    """Build lists with the entities of one column replaced, `[P, K, 3]`."""
    rows = max(1, CELLS // num_entities)
    bound = 3 - column
    answers = KnownAnswers.of(known[:, 0], known[:, bound], known[:, column], num_entities=num_entities)
    found = []
    for part in queries.split(rows):
        open_ = torch.ones(len(part), num_entities, dtype=torch.bool)
        row, entity = answers.of_questions(part[:, 0], part[:, bound])
        open_[row, entity - 1] = False
        open_.scatter_(1, part[:, column : column + 1] - 1, False)
        if domain is not None:
            open_ &= domain == domain[part[:, column] - 1].unsqueeze(1)
        order = torch.rand(open_.shape, generator=draw) if negatives else torch.arange(num_entities, 0, -1.0)
        most = int(open_.sum(1).amax()) if len(part) else 0
        value, index = torch.where(open_, order, -1.0).topk(min(negatives or most, most), dim=1)
        entity = torch.cat((part[:, column : column + 1], torch.where(value >= 0, index + 1, 0)), 1)
        atoms = part.unsqueeze(1).repeat(1, entity.shape[1], 1)
        atoms[..., column] = entity
        found.append(atoms * (entity > 0).unsqueeze(-1))
    width = max((atoms.shape[1] for atoms in found), default=1)
    return torch.cat([_pad_lists(atoms, width) for atoms in found])


def batches(candidates: Candidates, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Iterate over existing candidates in batches: their flat indices and their atoms `[m, 3]`."""
    place = candidates.exists.flatten().nonzero().squeeze(1)
    atoms = candidates.atoms.flatten(0, 1)
    for part in place.split(size):
        yield part, atoms[part]


def _pad_lists(atoms: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(atoms, (0, 0, 0, width - atoms.shape[1]))


def _domain_of(domains: Iterable[Sequence[int]], num_entities: int) -> Tensor | None:
    """Return the domain number of each entity, `[E]`; 0 for entities without a domain."""
    listed = list(domains)
    if not listed:
        return None
    domain = torch.zeros(num_entities, dtype=torch.int64)
    for number, entities in enumerate(listed, 1):
        domain[torch.tensor(entities) - 1] = number
    return domain
