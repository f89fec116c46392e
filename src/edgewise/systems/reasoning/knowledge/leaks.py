"""What splits of a knowledge graph share and should not, and what they ask that training never saw."""

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
    """What a split asks about that training has not.

    Args:
        entities: how many entities are in no training atom.
        predicates: how many predicates are in no training atom.
        atoms: how many atoms of the split have such an entity or predicate.
    """

    entities: int
    predicates: int
    atoms: int


@dataclass(frozen=True)
class LeakReport:
    """Counts of what makes a figure on this data too good or too bad.

    Args:
        sizes: atoms by split.
        duplicates: atoms of a split that were already in it.
        overlaps: different atoms that two splits share, by `first∩second`. Facts that are training atoms
            leak nothing and are not counted.
        unseen: by split, what training never saw.
    """

    sizes: dict[str, int]
    duplicates: dict[str, int]
    overlaps: dict[str, int]
    unseen: dict[str, Unseen]

    @property
    def leaking(self) -> bool:
        """Whether two splits share an atom."""
        return any(self.overlaps.values())

    def to_plain(self) -> dict[str, Any]:
        """As JSON would hold it."""
        return asdict(self)

    def warnings(self) -> list[str]:
        """A sentence for everything that a reader of figures on this data should know."""
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
    """The report on splits by name, each `[n, 3]`; `train` must be one of them, `facts` may be."""
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
    """One int64 for each atom `[n, 3]` → `[n]`, in the order of (predicate, head, tail)."""
    base = vocabulary.num_entities + 1
    return (atoms[:, 0] * base + atoms[:, 1]) * base + atoms[:, 2]


def among(atoms: Tensor, others: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Which atoms `[n, 3]` are in `others [m, 3]`: bool `[n]`; soft facts must be among no held-out atoms."""
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
