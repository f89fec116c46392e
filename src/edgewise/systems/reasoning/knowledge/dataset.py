"""Load a knowledge graph from a folder: splits as tensors of ids, rules and domains."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from edgewise.config.errors import DataError
from edgewise.systems.reasoning.knowledge.files import (
    Triple,
    fail,
    read_domains,
    read_triples,
    relation_column,
    reorder,
)
from edgewise.systems.reasoning.knowledge.leaks import LeakReport, find_leaks
from edgewise.systems.reasoning.knowledge.rule_files import read_rules
from edgewise.systems.reasoning.knowledge.rules import Rule
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")
NO_RULES = ""
SHIPPED = Path(__file__).parent / "assets"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dataset:
    """A knowledge graph. Atoms are rows (predicate, head, tail) of int64 ids, in the order of the files.

    Args:
        name: name of the folder.
        vocabulary: names and ids of all splits.
        train: `[n, 3]`, training atoms and training queries.
        valid: `[n, 3]`, validation queries.
        test: `[n, 3]`, test queries.
        facts: `[n, 3]`, facts for proofs: those of `facts.txt`, else `train`.
        rules: rules of one rule file, possibly none.
        domains: entities by domain; empty if the data has none.
        leaks: overlaps between the splits.
    """

    name: str
    vocabulary: Vocabulary
    train: Tensor
    valid: Tensor
    test: Tensor
    facts: Tensor
    rules: tuple[Rule, ...]
    domains: dict[str, tuple[int, ...]]
    leaks: LeakReport

    def split(self, name: str) -> Tensor:
        """Return the atoms of `train`, `valid` or `test`."""
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def with_facts_in_training(self) -> Dataset:
        """Return the dataset with the atoms of `facts.txt` before those of `train`, each atom once.

        Some published layouts keep most training atoms in `facts.txt`. A dataset without that file is
        returned unchanged.
        """
        if self.facts is self.train:
            return self
        given = {tuple(row) for row in self.facts.tolist()}
        others = torch.tensor([tuple(row) not in given for row in self.train.tolist()], dtype=torch.bool)
        return replace(self, train=torch.cat([self.facts, self.train[others]]))

    def known(self) -> Tensor:
        """Return all distinct atoms of all splits and the facts, `[n, 3]`, for filtered ranking."""
        return torch.unique(torch.cat([self.train, self.valid, self.test, self.facts]), dim=0)


def load_dataset(folder: str | Path, *, rules: str | None = None) -> Dataset:
    """Load the knowledge graph in `folder`.

    The folder holds `train.txt`, `valid.txt` (or `dev.txt`) and `test.txt`, and may hold `facts.txt`, rule
    files and `domain2constants.txt`: the layouts of ConvE, Neural-LP, RNNLogic and AnyBURL. Relations may
    be the first or the last column, in all files alike.

    Args:
        folder: a folder, or the name of a dataset in the package, such as `countries_s3`.
        rules: a rule file by its name in the folder or in its subfolder `rules`, or by its path. If not
            given, `rules.txt` in either place, if there is one. `NO_RULES` reads none.

    Raises:
        DataError: a file is missing or wrong; the message has the file, the line and a hint.
    """
    place = _place(folder)
    texts = _read_splits(place)
    vocabulary = _vocabulary(place, texts.values())
    atoms = {name: _ids(triples, vocabulary) for name, triples in texts.items()}
    leaks = find_leaks(atoms, vocabulary)
    for warning in leaks.warnings():
        log.warning("%s: %s", place.name, warning)
    return Dataset(
        name=place.name,
        vocabulary=vocabulary,
        train=atoms["train"],
        valid=atoms["valid"],
        test=atoms["test"],
        facts=atoms.get("facts", atoms["train"]),
        rules=_rules(place, rules, vocabulary),
        domains=_domains(place / "domain2constants.txt", vocabulary),
        leaks=leaks,
    )


def shipped_datasets() -> list[str]:
    """Return the names of the datasets in the package."""
    return sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())


def _place(folder: str | Path) -> Path:
    given = Path(folder)
    if given.is_dir():
        return given
    if str(folder) in shipped_datasets():
        return SHIPPED / str(folder)
    names = ", ".join(shipped_datasets())
    if given.exists():
        raise DataError(f"{given} is a file", hint="give the folder that holds train.txt")
    raise DataError(f"there is no folder {given}", hint=f"give a folder with train.txt, or one of {names}")


def _read_splits(place: Path) -> dict[str, list[Triple]]:
    """Read the triples of all splits; the training file shows which column holds the relations."""
    files = {split: place / f"{split}.txt" for split in SPLITS}
    if not files["valid"].exists() and (place / "dev.txt").exists():
        files["valid"] = place / "dev.txt"
    if (place / "facts.txt").exists():
        files["facts"] = place / "facts.txt"
    texts = {split: read_triples(path) for split, path in files.items()}
    column = relation_column(texts["train"] + texts.get("facts", []))
    if column != 1:
        where = "first" if column == 0 else "last"
        log.warning("%s: the relations are in the %s column, and heads before tails", place.name, where)
    return {split: reorder(triples, column) for split, triples in texts.items()}


def _vocabulary(place: Path, texts: Iterable[list[Triple]]) -> Vocabulary:
    entities: set[str] = set()
    predicates: set[str] = set()
    for triples in texts:
        for predicate, head, tail in triples:
            predicates.add(predicate)
            entities.add(head)
            entities.add(tail)
    try:
        return Vocabulary.of(entities, predicates)
    except DataError as error:
        raise DataError(f"{place}: {error.message}", hint=error.hint) from error


def _ids(triples: list[Triple], vocabulary: Vocabulary) -> Tensor:
    """Convert names to ids, `[n, 3]`."""
    entity, predicate = vocabulary.entity, vocabulary.predicate
    return torch.tensor([(predicate(p), entity(h), entity(t)) for p, h, t in triples], dtype=torch.int64)


def _rules(place: Path, given: str | None, vocabulary: Vocabulary) -> tuple[Rule, ...]:
    if given == NO_RULES:
        return ()
    if given is None:
        found = next(
            (path for path in (place / "rules.txt", place / "rules/rules.txt") if path.exists()), None
        )
        return () if found is None else read_rules(found, vocabulary)
    for path in (place / given, place / "rules" / given, Path(given)):
        if path.is_file():
            return read_rules(path, vocabulary)
    present = sorted(str(path.relative_to(place)) for path in place.rglob("rules*.txt"))
    there = f"there are {', '.join(present)}" if present else "it has no rule file"
    raise DataError(f"{place} has no rule file {given}", hint=there)


def _domains(path: Path, vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
    """Read the entity ids of each domain; an entity has at most one domain."""
    if not path.exists():
        return {}
    domain_of: dict[str, str] = {}
    domains = {}
    for name, entities in read_domains(path).items():
        for line, entity in entities:
            if not vocabulary.has_entity(entity):
                fail(path, line, f"{entity} of {name} is in no triple", hint="correct the name or drop it")
            if entity in domain_of:
                message = f"{entity} is in {domain_of[entity]} and again in {name}"
                fail(path, line, message, hint="list an entity once, in one domain")
            domain_of[entity] = name
        domains[name] = tuple(vocabulary.entity(entity) for _, entity in entities)
    return domains
