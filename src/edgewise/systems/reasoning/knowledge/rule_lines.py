"""Parse single rules as written by edgewise, AnyBURL, AMIE and Prolog."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from edgewise.systems.reasoning.knowledge.files import fail
from edgewise.systems.reasoning.knowledge.rules import Atom, Rule
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

Written = tuple[str, Sequence[str]]
"""Predicate and arguments as written."""

SHAPE = "write id:weight:b1(x,z), b2(z,y) -> head(x,y)"
ANYBURL = "write conclusions<TAB>support<TAB>confidence<TAB>head(X,Y) <= b1(X,A), b2(A,Y)"
AMIE = "write ?a  b1  ?c  ?c  b2  ?b   => ?a  head  ?b<TAB>head coverage<TAB>confidence"
PROLOG = "write head(X,Y) :- b1(X,Z), b2(Z,Y). with a weight as 0.9:: before it"

_QUOTES = r"'(?:[^']|'')+'|\"[^\"]+\""
_NAME = re.compile(rf"{_QUOTES}")
_ATOM = re.compile(rf"\s*((?:{_QUOTES})(?=\s*\()|[^\s(),]+)\s*\(((?:{_QUOTES}|[^()])*)\)\s*")
_ARGUMENT = re.compile(rf"\s*({_QUOTES}|[^,]*?)\s*(?:,|$)")
_COUNTS = re.compile(r"\s+% support (\d+) of (\d+)$")


class RuleLine:
    """Parser of one line of a rule file.

    Args:
        path: the file, for messages.
        number: the line, for messages.
        vocabulary: names that may occur.
    """

    def __init__(self, path: Path, number: int, vocabulary: Vocabulary) -> None:
        self._path, self._number, self._vocabulary = path, number, vocabulary
        self._variables: dict[str, int] = {}

    def own(self, text: str) -> Rule:
        """Parse `id:weight:b1(x,z), b2(z,y) -> head(x,y)`: bare words are variables, entities are quoted."""
        counts = _COUNTS.search(text)
        identifier, weight, clause = self._parts(text[: counts.start()] if counts else text)
        bare = _NAME.sub(lambda found: "_" * len(found[0]), clause)
        if bare.count("->") != 1:
            self._fail(f"{bare.count('->')} arrows where one was expected", SHAPE)
        arrow = bare.index("->")
        heads, bodies = self._atoms(clause[arrow + 2 :], SHAPE), self._atoms(clause[:arrow], SHAPE)
        if len(heads) != 1:
            self._fail(f"{len(heads)} atoms after the arrow where one was expected", SHAPE)
        if not bodies:
            self._fail("nothing before the arrow", "a rule needs a body; facts belong in train.txt")
        found = (int(counts[1]), int(counts[2])) if counts else (None, None)
        return self._build(identifier, weight, heads[0], bodies, self._own_term, found)

    def anyburl(self, text: str) -> Rule | None:
        """Parse a line of AnyBURL; None for a rule without a body, which edgewise does not use."""
        columns = text.split("\t")
        if len(columns) != 4 or columns[3].count(" <= ") + columns[3].endswith(" <=") != 1:
            self._fail("no rule of AnyBURL", ANYBURL)
        head_text, body_text = (
            columns[3].removesuffix(" <=").split(" <= ") if " <= " in columns[3] else ("", "")
        )
        if not body_text.strip():
            return None
        size, support = self._whole(columns[0]), self._whole(columns[1])
        atoms = [self._anyburl_atom(part) for part in (head_text, *re.split(r"(?<=\)), ", body_text))]
        name, weight = f"r{self._number}", self._weight(columns[2])
        return self._build(name, weight, atoms[0], atoms[1:], self._letter_term, (support, size))

    def amie(self, text: str) -> Rule:
        """Parse a line of AMIE; its standard confidence is the weight."""
        clause, *numbers = text.split("\t")
        words = clause.split()
        if words.count("=>") != 1 or (len(words) - 1) % 3 or words.index("=>") != len(words) - 4:
            self._fail("no rule of AMIE", AMIE)
        triples = [words[place : place + 3] for place in (*range(0, len(words) - 4, 3), len(words) - 3)]
        atoms: list[Written] = [(predicate, (first, second)) for first, predicate, second in triples]
        if not atoms[:-1]:
            self._fail("nothing before the arrow", AMIE)
        given = [number.replace(",", ".") for number in numbers]
        weight = self._weight(given[1]) if len(given) > 1 else 1.0
        counts = (round(float(given[3])), round(float(given[4]))) if len(given) > 4 else (None, None)
        return self._build(f"r{self._number}", weight, atoms[-1], atoms[:-1], self._question_term, counts)

    def prolog(self, text: str) -> Rule:
        """Parse a clause `0.9::head(X,Y) :- b1(X,Z), b2(Z,Y).`; the weight is 1 if not given."""
        weight, clause = 1.0, text.strip()
        if "::" in clause.split("(")[0]:
            number, clause = clause.split("::", 1)
            weight = self._weight(number)
        head_text, _, body_text = clause.removesuffix(".").partition(":-")
        heads, bodies = self._atoms(head_text, PROLOG), self._atoms(body_text, PROLOG)
        if len(heads) != 1 or not bodies:
            self._fail(f"{len(heads)} heads and {len(bodies)} conditions", PROLOG)
        return self._build(f"r{self._number}", weight, heads[0], bodies, self._prolog_term, (None, None))

    def _build(
        self,
        identifier: str,
        weight: float,
        head: Written,
        body: Sequence[Written],
        term: Callable[[str], int],
        counts: tuple[int | None, int | None],
    ) -> Rule:
        conclusion = self._atom(head, term)
        in_head = dict(self._variables)
        conditions = tuple(self._atom(written, term) for written in body)
        bound = {value for atom in conditions for value in atom[1:]}
        for name, variable in in_head.items():
            if variable not in bound:
                hint = "use it in the body, or put it in quotes if it is an entity"
                self._fail(f"the variable {name} of the head does not occur in the body", hint)
        return Rule(identifier, weight, conclusion, conditions, *counts)

    def _parts(self, text: str) -> tuple[str, float, str]:
        parts = text.split(":", 2)
        if len(parts) != 3:
            self._fail(f"{len(parts) - 1} colons where two were expected", SHAPE)
        identifier, weight, clause = (part.strip() for part in parts)
        if not identifier:
            self._fail("a rule without an id", SHAPE)
        return identifier, self._weight(weight), clause

    def _weight(self, text: str) -> float:
        try:
            weight = float(text)
        except ValueError:
            self._fail(f"the weight {text!r} is no number", "write it with a point, such as 0.75")
        if not math.isfinite(weight) or weight < 0:
            self._fail(f"the weight {text} is not finite and at least 0", "write it as 0.75 or 12")
        return weight

    def _whole(self, text: str) -> int:
        if not re.fullmatch(r"\d+", text.strip()):
            self._fail(f"{text!r} is no number of atoms", ANYBURL)
        return int(text)

    def _atoms(self, text: str, shape: str) -> list[Written]:
        """Split a comma-separated list of atoms into predicates and arguments."""
        atoms: list[Written] = []
        position = 0
        while text[position:].strip():
            found = _ATOM.match(text, position)
            if found is None:
                self._fail(f"{text[position:].strip()!r} is no atom", shape)
            arguments = [part[1] for part in _ARGUMENT.finditer(found[2]) if part.start() <= part.end()]
            if arguments and not arguments[-1] and not found[2].rstrip().endswith(","):
                arguments.pop()
            atoms.append((_unquoted(found[1]), arguments))
            position = found.end()
            if position < len(text):
                if text[position] != "," or not text[position + 1 :].strip():
                    self._fail(
                        f"{text[position:].strip()!r} after an atom", "put one comma between two atoms"
                    )
                position += 1
        return atoms

    def _anyburl_atom(self, text: str) -> Written:
        """Split `predicate(first,second)`; names may have parentheses, and an entity may have commas."""
        predicate, _, rest = text.strip().partition("(")
        inner = rest.removesuffix(")")
        if not rest.endswith(")") or "," not in inner:
            self._fail(f"{text!r} is no atom", ANYBURL)
        first, second = inner.split(",", 1) if inner[1:2] == "," else inner.rsplit(",", 1)
        return predicate, (first, second)

    def _atom(self, written: Written, term: Callable[[str], int]) -> Atom:
        predicate, arguments = written
        if not self._vocabulary.has_predicate(predicate):
            self._fail(f"no triple of the data has the predicate {predicate}", "correct it or drop the rule")
        terms = [term(argument) for argument in arguments]
        if len(terms) != 2:
            self._fail(f"{predicate} has {len(terms)} arguments where 2 were expected", "predicates have two")
        return self._vocabulary.predicate(predicate), terms[0], terms[1]

    def _own_term(self, text: str) -> int:
        if _NAME.fullmatch(text):
            return self._entity(_unquoted(text))
        if not re.fullmatch(r"\w+", text):
            self._fail(f"{text!r} is no variable", "use letters and digits, or quotes around an entity")
        if self._vocabulary.has_entity(text):
            hint = f"write '{text}' for the entity, or rename the variable"
            self._fail(f"{text} could be a variable or the entity of that name", hint)
        return self._variable(text)

    def _letter_term(self, text: str) -> int:
        """Return a term of AnyBURL: single upper-case letters are variables."""
        return self._variable(text) if re.fullmatch(r"[A-Z]", text) else self._entity(text)

    def _question_term(self, text: str) -> int:
        """Return a term of AMIE: variables begin with a question mark."""
        return self._variable(text) if text.startswith("?") else self._entity(text)

    def _prolog_term(self, text: str) -> int:
        """Return a term of Prolog: variables begin with an upper-case letter or an underscore."""
        if text == "_":
            return self._variable(f"_{len(self._variables)}")
        variable = not _NAME.fullmatch(text) and (text[:1].isupper() or text[:1] == "_")
        return self._variable(text) if variable else self._entity(_unquoted(text))

    def _variable(self, name: str) -> int:
        return self._variables.setdefault(name, -len(self._variables) - 1)

    def _entity(self, name: str) -> int:
        if not self._vocabulary.has_entity(name):
            self._fail(f"no triple of the data has the entity {name}", "correct it or drop the rule")
        return self._vocabulary.entity(name)

    def _fail(self, message: str, hint: str) -> NoReturn:
        fail(self._path, self._number, message, hint=hint)


def _unquoted(text: str) -> str:
    if not _NAME.fullmatch(text):
        return text
    return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
