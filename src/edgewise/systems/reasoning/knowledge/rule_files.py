"""Read and write rule files in the formats of edgewise, AnyBURL, AMIE and Prolog."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from edgewise.config.errors import ConfigError, DataError
from edgewise.systems.reasoning.knowledge.files import fail, read_lines
from edgewise.systems.reasoning.knowledge.rule_lines import SHAPE, RuleLine
from edgewise.systems.reasoning.knowledge.rules import Atom, Rule
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

FORMATS = ("edgewise", "anyburl", "amie", "prolog")

log = logging.getLogger(__name__)


def read_rules(path: Path, vocabulary: Vocabulary) -> tuple[Rule, ...]:
    """Read the rules of a file, in order. The first rule shows the format; `%` begins a comment.

    Raises:
        DataError: the file cannot be read, has no rule, or has a line that is no rule over this vocabulary.
    """
    lines = [(number, text) for number, text in read_lines(path) if not text.startswith("%")]
    if lines and lines[0][1].startswith("Rule\tHead Coverage"):
        lines = lines[1:]
    if not lines:
        fail(path, 1, "no rule in the whole file", hint=f"{SHAPE}, or leave the file out")
    kind = _format_of(lines[0][1])
    rules, seen, without_body = [], dict[str, int](), 0
    for number, text in lines:
        rule: Rule | None = getattr(RuleLine(path, number, vocabulary), kind)(text)
        if rule is None:
            without_body += 1
            continue
        if rule.identifier in seen:
            message = f"the rule id {rule.identifier} was used on line {seen[rule.identifier]}"
            fail(path, number, message, hint="give each rule an id of its own")
        seen[rule.identifier] = number
        rules.append(rule)
    if without_body:
        log.warning("%s: %s rules without a body were left out", path, f"{without_body:,}")
    if not rules:
        fail(path, 1, "no rule with a body in the whole file", hint=SHAPE)
    return tuple(rules)


def write_rules(
    path: Path,
    rules: Sequence[Rule],
    vocabulary: Vocabulary,
    *,
    format: str = "edgewise",
    comments: Iterable[str] = (),
) -> None:
    """Write rules to a file, one per line, with comments before them where the format has any.

    Raises:
        ConfigError: the file cannot be written.
        DataError: a name cannot be written in this format.
    """
    lines = list(_WRITERS[format](rules, vocabulary))
    if format in ("edgewise", "prolog"):
        lines = [*(f"% {comment}" for comment in comments), *lines]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def _format_of(text: str) -> str:
    """Return the parser of a line, a method of `RuleLine`."""
    if "\t" in text and (" <= " in text or text.endswith(" <=")):
        return "anyburl"
    if re.search(r"\s=>\s", text):
        return "amie"
    return "prolog" if ":-" in text else "own"


def _own(rules: Sequence[Rule], words: Vocabulary) -> Iterator[str]:
    entity = _quoting(words.entities, "edgewise", always=True)
    predicate = _quoting(words.predicates, "edgewise")
    term = _terms(words, entity, _free_names(words))
    for rule in rules:
        body = ", ".join(_call(atom, predicate, term) for atom in rule.body)
        known = rule.support is not None and rule.body_size is not None
        counts = f"  % support {rule.support} of {rule.body_size}" if known else ""
        yield f"{rule.identifier}:{rule.weight:.6g}:{body} -> {_call(rule.head, predicate, term)}{counts}"


def _anyburl(rules: Sequence[Rule], words: Vocabulary) -> Iterator[str]:
    for name in words.entities:
        if re.fullmatch(r"[A-Z]", name):
            raise DataError(f"AnyBURL reads the entity {name} as a variable", hint="rename it in the data")
    letters = ("X", "Y", *"ABCDEFGHIJKLMNOPQRSTUVWZ")
    term = _terms(words, lambda entity: words.entities[entity - 1], letters)
    for rule in rules:
        body = ", ".join(_call(atom, lambda p: words.predicates[p - 1], term) for atom in rule.body)
        head = _call(rule.head, lambda p: words.predicates[p - 1], term)
        yield f"{rule.body_size or 0}\t{rule.support or 0}\t{rule.weight:.6g}\t{head} <= {body}"


def _amie(rules: Sequence[Rule], words: Vocabulary) -> Iterator[str]:
    for name in (*words.entities, *words.predicates):
        if re.search(r"\s", name) or name.startswith("?"):
            raise DataError(f"AMIE cannot write the name {name!r}", hint="names need no spaces there")
    term = _terms(words, lambda entity: words.entities[entity - 1], [f"?{letter}" for letter in "abcdefghij"])
    yield "Rule\tHead Coverage\tStd Confidence\tPCA Confidence\tPositive Examples\tBody size\tPCA Body size"
    for rule in rules:
        triples = [
            f"{term(first)}  {words.predicates[predicate - 1]}  {term(second)}"
            for predicate, first, second in (*rule.body, rule.head)
        ]
        counts = f"{rule.support or 0}\t{rule.body_size or 0}\t0"
        yield f"{'  '.join(triples[:-1])}   => {triples[-1]}\t0\t{rule.weight:.6g}\t0\t{counts}"


def _prolog(rules: Sequence[Rule], words: Vocabulary) -> Iterator[str]:
    entity = _quoting(words.entities, "Prolog", bare=r"[a-z]\w*|\d+")
    predicate = _quoting(words.predicates, "Prolog", bare=r"[a-z]\w*")
    term = _terms(words, entity, ("X", "Y", *"ABCDEFGH"))
    for rule in rules:
        body = ", ".join(_call(atom, predicate, term) for atom in rule.body)
        yield f"{rule.weight:.6g}::{_call(rule.head, predicate, term)} :- {body}."


_WRITERS: dict[str, Callable[[Sequence[Rule], Vocabulary], Iterator[str]]] = {
    "edgewise": _own,
    "anyburl": _anyburl,
    "amie": _amie,
    "prolog": _prolog,
}


def _call(atom: Atom, predicate: Callable[[int], str], term: Callable[[int], str]) -> str:
    return f"{predicate(atom[0])}({term(atom[1])},{term(atom[2])})"


def _terms(words: Vocabulary, entity: Callable[[int], str], variables: Sequence[str]) -> Callable[[int], str]:
    del words
    return lambda value: variables[-value - 1] if value < 0 else entity(value)


def _free_names(words: Vocabulary) -> list[str]:
    """Return names of variables that no entity has."""
    names = ("X", "Y", "A", "B", "C", "D", "E", "F", "G", "H")
    found = []
    for name in names:
        while words.has_entity(name):
            name += "_"
        found.append(name)
    return found


def _quoting(
    names: Sequence[str], format: str, *, always: bool = False, bare: str = r"[^\s(),'\":]+"
) -> Callable[[int], str]:
    """Return a function from ids to names, in quotes where they need them."""

    def quote(number: int) -> str:
        name = names[number - 1]
        if not always and re.fullmatch(bare, name):
            return name
        if not name:
            raise DataError(f"an empty name cannot be written for {format}", hint="rename it in the data")
        return "'" + name.replace("'", "''") + "'"

    return quote
