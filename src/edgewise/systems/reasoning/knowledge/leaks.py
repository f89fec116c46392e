"""Data checks: atoms shared between splits, duplicates, and names that are not in the training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary


@dataclass(frozen=True)
class Unseen:
    """Names of a split that are in no training atom.

    Args:
        entities: number of such entities.
        predicates: number of such predicates.
        atoms: number of atoms of the split with such an entity or predicate.
    """

    entities: int
    predicates: int
    atoms: int


@dataclass(frozen=True)
class LeakReport:
    """Counts of problems that distort figures on this data.

    Args:
        sizes: number of atoms by split.
        duplicates: number of repeated atoms by split.
        overlaps: number of distinct atoms that two splits share, by `first∩second`. Facts that are training
            atoms do not count.
        unseen: names that are not in the training data, by split.
    """

    sizes: dict[str, int]
    duplicates: dict[str, int]
    overlaps: dict[str, int]
    unseen: dict[str, Unseen]

    def to_plain(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)

    def warnings(self) -> list[str]:
        """Return one sentence per problem."""
        found = [
            f"{count:,} atoms are in both {pair.replace('∩', ' and ')}"
            for pair, count in self.overlaps.items()
            if count
        ]
        found += [
            f"{count:,} atoms of {split} are repeated" for split, count in self.duplicates.items() if count
        ]
        found += [
            f"{unseen.atoms:,} atoms of {split} have one of {unseen.entities:,} entities or"
            f" {unseen.predicates:,} predicates that training never saw"
            for split, unseen in self.unseen.items()
            if unseen.atoms
        ]
        return found


def find_leaks(atoms: Mapping[str, Tensor], vocabulary: Vocabulary) -> LeakReport:
    """Check splits by name, each `[n, 3]`; `train` is required, `facts` is optional."""
    unique = {name: torch.unique(atom_keys(split, vocabulary)) for name, split in atoms.items()}
    overlaps = {
        f"{first}∩{second}": int(torch.isin(unique[first], unique[second]).sum())
        for first, second in combinations(atoms, 2)
        if {first, second} != {"train", "facts"}
    }
    seen = torch.cat([atoms["train"], atoms["facts"]]) if "facts" in atoms else atoms["train"]
    return LeakReport(
        sizes={name: len(split) for name, split in atoms.items()},
        duplicates={name: len(split) - len(unique[name]) for name, split in atoms.items()},
        overlaps=overlaps,
        unseen={name: _unseen(atoms[name], seen) for name in atoms if name not in ("train", "facts")},
    )


def atom_keys(atoms: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Map atoms `[n, 3]` to int64 keys `[n]`, ordered by (predicate, head, tail)."""
    base = vocabulary.num_entities + 1
    return (atoms[:, 0] * base + atoms[:, 1]) * base + atoms[:, 2]


def among(atoms: Tensor, others: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Return which atoms `[n, 3]` are in `others [m, 3]`, `[n]` bool."""
    return torch.isin(atom_keys(atoms, vocabulary), atom_keys(others, vocabulary))


def _unseen(split: Tensor, seen: Tensor) -> Unseen:
    new_predicate = ~torch.isin(split[:, 0], seen[:, 0].unique())
    terms = split[:, 1:].contiguous()
    new_term = ~torch.isin(terms, seen[:, 1:].unique())
    return Unseen(
        entities=len(terms[new_term].unique()),
        predicates=len(split[:, 0][new_predicate].unique()),
        atoms=int((new_predicate | new_term.any(1)).sum()),
    )
