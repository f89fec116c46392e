"""Vocabulary of a knowledge graph: names and ids of entities and predicates; it sizes every table.

Ids start at 1 in both spaces, and 0 is padding. Terms are entities 1..E, sorted by name, and variables
above them. Predicates are 1..P, sorted by name, then the four that end a proof, then one assumption per
predicate, for atoms that are assumed on the basis of an embedding.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from edgewise.config.errors import DataError

PADDING = 0
SPECIALS = ("True", "False", "Endf", "Endt")
ASSUMED = "_kge"
ATOM = re.compile(r"([^\s(]+)\(([^,]*),(.*)\)")


@dataclass(frozen=True)
class Vocabulary:
    """Names of entities and predicates, and their ids.

    Args:
        entities: names in the order of their ids, 1 and up.
        predicates: names in the order of their ids, 1 and up.

    Example:
        >>> words = Vocabulary.of(["oslo", "norway"], ["in"])
        >>> words.entity("oslo"), words.predicate("in"), words.num_predicate_ids
        (2, 1, 6)
        >>> words.text((1, 2, 3))
        'in(oslo,X1)'
    """

    entities: tuple[str, ...]
    predicates: tuple[str, ...]
    _entity_ids: dict[str, int] = field(init=False, repr=False, compare=False)
    _predicate_ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check(self.predicates)
        object.__setattr__(self, "_entity_ids", {name: i for i, name in enumerate(self.entities, 1)})
        object.__setattr__(self, "_predicate_ids", {name: i for i, name in enumerate(self.predicates, 1)})
        if len(self._entity_ids) < self.num_entities or len(self._predicate_ids) < self.num_predicates:
            raise DataError("a name occurs twice in a vocabulary", hint="give each name once")

    @classmethod
    def of(cls, entities: Iterable[str], predicates: Iterable[str]) -> Vocabulary:
        """Build a vocabulary from names in any order; duplicates are allowed."""
        return cls(tuple(sorted(set(entities))), tuple(sorted(set(predicates))))

    @property
    def num_entities(self) -> int:
        """E, the number of entities and the largest id of an entity."""
        return len(self.entities)

    @property
    def num_predicates(self) -> int:
        """P, the number of predicates in the data."""
        return len(self.predicates)

    @property
    def num_predicate_ids(self) -> int:
        """2P + 4, the largest id of a predicate; a table has one more row for padding."""
        return 2 * self.num_predicates + len(SPECIALS)

    def num_term_ids(self, max_variables: int) -> int:
        """Return the largest id of a term; a table has one more row for padding."""
        return self.num_entities + max_variables

    @property
    def true(self) -> int:
        """The predicate of a proved state."""
        return self.num_predicates + 1

    @property
    def false(self) -> int:
        """The predicate of a failed state."""
        return self.num_predicates + 2

    @property
    def end_false(self) -> int:
        """The predicate of a state that was given up."""
        return self.num_predicates + 3

    @property
    def end_true(self) -> int:
        """The predicate of a state that was claimed without a proof."""
        return self.num_predicates + 4

    @property
    def assumed_offset(self) -> int:
        """Offset from the id of a predicate to the id of its assumption."""
        return self.num_predicates + len(SPECIALS)

    def entity(self, name: str) -> int:
        """Return the id of an entity."""
        return _find(self._entity_ids, name, "entity")

    def predicate(self, name: str) -> int:
        """Return the id of a predicate of the data."""
        return _find(self._predicate_ids, name, "predicate")

    def has_entity(self, name: str) -> bool:
        """Return whether there is such an entity."""
        return name in self._entity_ids

    def has_predicate(self, name: str) -> bool:
        """Return whether there is such a predicate."""
        return name in self._predicate_ids

    @cached_property
    def predicate_names(self) -> tuple[str, ...]:
        """Names of all predicate ids, padding first: 2P + 5 names."""
        assumed = (f"{name}{ASSUMED}" for name in self.predicates)
        return ("", *self.predicates, *SPECIALS, *assumed)

    def term_name(self, term: int) -> str:
        """Return the name of a term: variables are X1, X2, …, and negative ones of rules V1, V2, …."""
        if term < 0:
            return f"V{-term}"
        if term > self.num_entities:
            return f"X{term - self.num_entities}"
        return self.entities[term - 1] if term else ""

    def text(self, atom: Iterable[int]) -> str:
        """Format an atom (predicate, head, tail); predicates that end a proof have no arguments."""
        predicate, head, tail = (int(value) for value in atom)
        name = self.predicate_names[predicate]
        if self.num_predicates < predicate <= self.assumed_offset:
            return name
        return f"{name}({self.term_name(head)},{self.term_name(tail)})"

    def atom(self, text: str) -> tuple[int, int, int]:
        """Parse a ground atom such as `in(oslo,norway)` into ids.

        Raises:
            DataError: the text is not an atom, or has an unknown name.
        """
        found = ATOM.fullmatch(text.strip().removesuffix(".").rstrip())
        head, tail = (found[2].strip(), found[3].strip()) if found else ("", "")
        if found is None or not (head and tail):
            raise DataError(f"{text!r} is no atom", hint="write it as predicate(head,tail)")
        return self.predicate(found[1]), self.entity(head), self.entity(tail)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all names in order; equal digests mean equal ids."""
        parts = (str(self.num_entities), *self.entities, str(self.num_predicates), *self.predicates)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _check(predicates: tuple[str, ...]) -> None:
    names = set(predicates)
    for name in predicates:
        clash = name in SPECIALS or (name.endswith(ASSUMED) and name.removesuffix(ASSUMED) in names)
        if clash:
            raise DataError(f"the predicate name {name} is reserved", hint=f"rename {name} in the data")


def _find(ids: dict[str, int], name: str, kind: str) -> int:
    if name not in ids:
        from difflib import get_close_matches

        near = get_close_matches(name, ids, n=1)
        raise DataError(f"no {kind} is called {name}", hint=f"did you mean {near[0]}?" if near else None)
    return ids[name]
