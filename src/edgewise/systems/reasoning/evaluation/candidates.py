"""Lists of candidates for queries: the true atom first, then false ones that no split knows to be true."""

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
"""Entries of the largest table of queries by entities that is made at once."""


@dataclass(frozen=True)
class Candidates:
    """One list for each query and side.

    Args:
        atoms: `[Q, K, 3]`; the first of each list is the true one, absent ones are zeros.
        exists: `[Q, K]`, which candidates there are.
        query: `[Q]`, which row of the queries a list is of.
        side: `[Q]`, the column that was replaced: 1 for heads, 2 for tails.
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
    """Lists for `queries [P, 3]`, filtered by what is `known [n, 3]`.

    Args:
        queries: true atoms.
        known: atoms that must not stand among the false ones.
        num_entities: ids of entities are 1 to this.
        sides: which end is replaced; a list for each.
        negatives: false atoms of a list, drawn without repetition; None for all there are.
        domains: entities of which only those of the same domain stand for each other.
        seed: of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    kind = _domain_of(domains, num_entities)
    lists = [
        _one_side(queries, known, COLUMN[side], num_entities, negatives=negatives, kind=kind, draw=generator)
        for side in sides
    ]
    width = max(atoms.shape[1] for atoms in lists)
    atoms = torch.cat([_widened(part, width) for part in lists])
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
    kind: Tensor | None,
    draw: torch.Generator,
) -> Tensor:
    """Lists with the entities of one column replaced, `[P, K, 3]`."""
    rows = max(1, CELLS // num_entities)
    bound = 3 - column
    answers = KnownAnswers.of(known[:, 0], known[:, bound], known[:, column], num_entities=num_entities)
    found = []
    for part in queries.split(rows):
        open_ = torch.ones(len(part), num_entities, dtype=torch.bool)
        row, entity = answers.of_questions(part[:, 0], part[:, bound])
        open_[row, entity - 1] = False
        open_.scatter_(1, part[:, column : column + 1] - 1, False)
        if kind is not None:
            open_ &= kind == kind[part[:, column] - 1].unsqueeze(1)
        order = torch.rand(open_.shape, generator=draw) if negatives else torch.arange(num_entities, 0, -1.0)
        most = int(open_.sum(1).amax()) if len(part) else 0
        value, index = torch.where(open_, order, -1.0).topk(min(negatives or most, most), dim=1)
        entity = torch.cat((part[:, column : column + 1], torch.where(value >= 0, index + 1, 0)), 1)
        atoms = part.unsqueeze(1).repeat(1, entity.shape[1], 1)
        atoms[..., column] = entity
        found.append(atoms * (entity > 0).unsqueeze(-1))
    width = max((atoms.shape[1] for atoms in found), default=1)
    return torch.cat([_widened(atoms, width) for atoms in found])


def batches(candidates: Candidates, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """All candidates that exist, in parts: where they stand in the flat lists, and their atoms `[m, 3]`."""
    place = candidates.exists.flatten().nonzero().squeeze(1)
    atoms = candidates.atoms.flatten(0, 1)
    for part in place.split(size):
        yield part, atoms[part]


def _widened(atoms: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(atoms, (0, 0, 0, width - atoms.shape[1]))


def _domain_of(domains: Iterable[Sequence[int]], num_entities: int) -> Tensor | None:
    """The number of each entity's domain, `[E]`; those of none are of domain 0 together."""
    listed = list(domains)
    if not listed:
        return None
    kind = torch.zeros(num_entities, dtype=torch.int64)
    for number, entities in enumerate(listed, 1):
        kind[torch.tensor(entities) - 1] = number
    return kind
