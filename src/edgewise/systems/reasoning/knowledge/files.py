"""Read triples and domains from text files; errors carry the file, the line and a hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from edgewise.config import sources
from edgewise.config.errors import DataError

Triple = tuple[str, str, str]
"""Names in the order (predicate, head, tail)."""

FACT = re.compile(r"([^\s(),]+)\s*\(([^()]*)\)\s*\.?")


def fail(path: Path, line: int, message: str, *, hint: str) -> NoReturn:
    """Raise DataError for a line of a file."""
    raise DataError(f"{path}:{line}: {message}", hint=hint)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Iterate over the non-blank lines of a text file, stripped, with line numbers from 1; LF, CRLF or CR.

    Raises:
        DataError: the file cannot be read, or is not UTF-8.
    """
    text = sources.read_text(path, hint="give a folder that holds this file")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    for number, line_text in enumerate(text.split("\n"), 1):
        stripped = line_text.strip(" \r")
        if stripped.strip():
            yield number, stripped


def read_triples(path: Path) -> list[Triple]:
    """Read the triples of a file, in order, as (predicate, head, tail).

    The first line determines the format of the file: `head<TAB>relation<TAB>tail`, or `predicate(head,tail).`
    with comment lines that begin with `%`.

    Raises:
        DataError: the file cannot be read, has no triple, or has a line that is not a triple.
    """
    lines = [(number, text) for number, text in read_lines(path) if "\t" in text or not text.startswith("%")]
    if not lines:
        raise DataError(f"{path} holds no triple", hint="every split needs at least one line")
    parse = _tabbed if "\t" in lines[0][1] else _written
    return [parse(path, number, text) for number, text in lines]


def relation_column(triples: list[Triple]) -> int:
    """Return which column of a file holds the relations, from its triples as `read_triples` returns them.

    It is the middle one (1), as in most published data, unless the other two columns share names with each
    other and none with the first (0) or the last (2), which also has fewer names.
    """
    middle, first, last = (set(names) for names in zip(*triples, strict=True))
    if first.isdisjoint(middle | last) and len(first) < len(middle) and middle & last:
        return 0
    if last.isdisjoint(middle | first) and len(last) < len(middle) and middle & first:
        return 2
    return 1


def reorder(triples: list[Triple], column: int) -> list[Triple]:
    """Return triples that were read with their relations in another column as (predicate, head, tail)."""
    if column == 0:
        return [(relation, head, tail) for head, relation, tail in triples]
    if column == 2:
        return [(relation, head, tail) for tail, head, relation in triples]
    return triples


def read_domains(path: Path) -> dict[str, list[tuple[int, str]]]:
    """Read a file of lines `domain entity entity …`: entities with their line number, by domain.

    Raises:
        DataError: the file cannot be read, or a domain is empty or given twice.
    """
    domains: dict[str, list[tuple[int, str]]] = {}
    for number, text in read_lines(path):
        name, *entities = text.split()
        if name in domains:
            fail(path, number, f"the domain {name} is given twice", hint="write it on one line")
        if not entities:
            fail(path, number, f"the domain {name} has no entity", hint="list its entities after its name")
        domains[name] = [(number, entity) for entity in entities]
    return domains


def _tabbed(path: Path, number: int, text: str) -> Triple:
    columns = text.split("\t")
    if len(columns) != 3:
        got = f"{len(columns)} column{'s' * (len(columns) != 1)} where 3 were expected"
        fail(path, number, got, hint="write head<TAB>relation<TAB>tail")
    head, relation, tail = (column.strip() for column in columns)
    if not (head and relation and tail):
        fail(path, number, "an empty name", hint="write head<TAB>relation<TAB>tail")
    return relation, head, tail


def _written(path: Path, number: int, text: str) -> Triple:
    found = FACT.fullmatch(text)
    if found is None:
        shown = text if len(text) <= 60 else f"{text[:57]}…"
        hint = "write predicate(head,tail). or three columns with tabs, one way in the whole file"
        fail(path, number, f"{shown!r} is no fact", hint=hint)
    names = [name.strip() for name in found[2].split(",")]
    if len(names) != 2 or not all(names):
        got = sum(map(bool, names))
        fail(
            path,
            number,
            f"{found[1]} has {got} arguments where 2 were expected",
            hint="write predicate(head,tail).",
        )
    return found[1], names[0], names[1]
