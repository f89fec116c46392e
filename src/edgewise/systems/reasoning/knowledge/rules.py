"""Rules of a knowledge graph and the parser of `id:weight:b1(x,z), b2(z,y) -> head(x,y)`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from edgewise.systems.reasoning.knowledge.files import fail, read_lines
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

Atom = tuple[int, int, int]
"""Ids in the order (predicate, first argument, second argument); variables of a rule are negative."""

SHAPE = "write id:weight:b1(x,z), b2(z,y) -> head(x,y)"
WRITTEN = re.compile(r"\s*([^\s(),]+)\s*\(([^()]*)\)\s*")
QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")


@dataclass(frozen=True)
class Rule:
    """An implication from a body of atoms to a head.

    Args:
        identifier: the id in the file.
        weight: the number in the file, such as a confidence; the engine does not use it.
        head: the conclusion. Variables are −1, −2, … by first appearance, the head before the body.
        body: the conditions, at least one atom; contains every variable of the head.
    """

    identifier: str
    weight: float
    head: Atom
    body: tuple[Atom, ...]

    @property
    def num_variables(self) -> int:
        """Number of variables."""
        return -min(0, *(term for atom in (self.head, *self.body) for term in atom[1:]))

    def text(self, vocabulary: Vocabulary) -> str:
        """Format the rule with names."""
        body = ", ".join(map(vocabulary.text, self.body))
        return f"{body} -> {vocabulary.text(self.head)}"


def read_rules(path: Path, vocabulary: Vocabulary) -> tuple[Rule, ...]:
    """Read the rules of a file, in order.

    A bare word in a rule is a variable, in upper or lower case; an entity is quoted.

    Raises:
        DataError: the file cannot be read, has no rule, or has a line that is no rule over this vocabulary.
    """
    lines: dict[str, int] = {}
    rules = []
    for number, text in read_lines(path):
        if text.startswith("%"):
            continue
        rule = _LineReader(path, number, vocabulary).rule(text)
        if rule.identifier in lines:
            message = f"the rule id {rule.identifier} was used on line {lines[rule.identifier]}"
            fail(path, number, message, hint="give each rule an id of its own")
        lines[rule.identifier] = number
        rules.append(rule)
    if not rules:
        fail(path, 1, "no rule in the whole file", hint=f"{SHAPE}, or leave the file out")
    return tuple(rules)


class _LineReader:
    """Parser of one line."""

    def __init__(self, path: Path, number: int, vocabulary: Vocabulary) -> None:
        self._path, self._number, self._vocabulary = path, number, vocabulary
        self._variables: dict[str, int] = {}

    def rule(self, text: str) -> Rule:
        identifier, weight, clause = self._parts(text)
        if clause.count("->") != 1:
            self._fail(f"{clause.count('->')} arrows where one was expected", SHAPE)
        body_text, head_text = clause.split("->")
        heads, bodies = self._written(head_text), self._written(body_text)
        if len(heads) != 1:
            self._fail(f"{len(heads)} atoms after the arrow where one was expected", SHAPE)
        if not bodies:
            self._fail("nothing before the arrow", "a rule needs a body; facts belong in train.txt")
        head = self._atom(*heads[0])
        in_head = dict(self._variables)
        body = tuple(self._atom(*written) for written in bodies)
        bound = {term for atom in body for term in atom[1:]}
        for name, variable in in_head.items():
            if variable not in bound:
                hint = "use it in the body, or put it in quotes if it is an entity"
                self._fail(f"the variable {name} of the head does not occur in the body", hint)
        return Rule(identifier, weight, head, body)

    def _parts(self, text: str) -> tuple[str, float, str]:
        parts = text.split(":", 2)
        if len(parts) != 3:
            self._fail(f"{len(parts) - 1} colons where two were expected", SHAPE)
        identifier, weight_text, clause = (part.strip() for part in parts)
        if not identifier:
            self._fail("a rule without an id", SHAPE)
        try:
            weight = float(weight_text)
        except ValueError:
            self._fail(f"the weight {weight_text!r} is no number", "write it with a point, such as 0.75")
        if not math.isfinite(weight) or weight < 0:
            self._fail(f"the weight {weight_text} is not finite and at least 0", "write it as 0.75 or 12")
        return identifier, weight, clause

    def _written(self, text: str) -> list[tuple[str, str]]:
        """Split a comma-separated list of atoms into predicates and arguments."""
        atoms: list[tuple[str, str]] = []
        position = 0
        while text[position:].strip():
            found = WRITTEN.match(text, position)
            if found is None:
                self._fail(f"{text[position:].strip()!r} is no atom", SHAPE)
            atoms.append((found[1], found[2]))
            position = found.end()
            if position < len(text):
                if text[position] != "," or not text[position + 1 :].strip():
                    self._fail(
                        f"{text[position:].strip()!r} after an atom", "put one comma between two atoms"
                    )
                position += 1
        return atoms

    def _atom(self, predicate: str, arguments: str) -> Atom:
        if not self._vocabulary.has_predicate(predicate):
            self._fail(f"no triple of the data has the predicate {predicate}", "correct it or drop the rule")
        terms = [self._term(term.strip()) for term in arguments.split(",")]
        if len(terms) != 2:
            self._fail(f"{predicate} has {len(terms)} arguments where 2 were expected", SHAPE)
        return self._vocabulary.predicate(predicate), terms[0], terms[1]

    def _term(self, text: str) -> int:
        quoted = QUOTED.fullmatch(text)
        if quoted is not None:
            name = quoted[1] or quoted[2]
            if not self._vocabulary.has_entity(name):
                self._fail(f"no triple of the data has the entity {name}", "correct it or drop the rule")
            return self._vocabulary.entity(name)
        if not re.fullmatch(r"\w+", text):
            self._fail(f"{text!r} is no variable", "use letters and digits, or quotes around an entity")
        if self._vocabulary.has_entity(text):
            hint = f"write '{text}' for the entity, or rename the variable"
            self._fail(f"{text} could be a variable or the entity of that name", hint)
        return self._variables.setdefault(text, -len(self._variables) - 1)

    def _fail(self, message: str, hint: str) -> NoReturn:
        fail(self._path, self._number, message, hint=hint)
