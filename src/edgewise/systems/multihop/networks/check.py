"""Checked access to JSON: every error names file, field and remedy."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from edgewise.config import files
from edgewise.config.errors import DataError


def parse_json(text: str, file: str) -> Any:
    """Parse JSON and refuse duplicate keys, numbers of thousands of digits and deep nesting."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise DataError(
                f"{file}: {twice}: given twice in one object", hint="join the two entries into one"
            )
        return content

    try:
        return files.parse_json(text, pairs=once)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{file}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}",
            hint="an instance file is one JSON object, as the env card describes it",
        ) from error
    except ValueError as error:
        raise DataError(f"{file}: not JSON: {error}", hint="write it as the env card describes it") from error


@dataclass(frozen=True)
class Fields:
    """One JSON object of a file, with its path in the file."""

    content: dict[str, Any]
    file: str
    path: str

    @classmethod
    def of(cls, content: object, file: str, path: str) -> Fields:
        """Wrap the object at `path`, or raise DataError if it is not an object."""
        if not isinstance(content, dict):
            place = f"{path}: " if path else ""
            raise DataError(
                f"{file}: {place}expected an object, got {_kind(content)}", hint="write {…} with named fields"
            )
        return cls(content, file, path)

    def fail(self, field: str, problem: str, remedy: str) -> NoReturn:
        """Raise DataError for one field."""
        raise DataError(f"{self.file}: {self._place(field)}: {problem}", hint=remedy)

    def _place(self, field: str) -> str:
        return f"{self.path}.{field}" if self.path else field

    def only(self, *known: str) -> None:
        """Refuse fields that are not known."""
        for field in self.content:
            if field not in known:
                self.fail(field, "unknown field", f"known fields are {', '.join(known)}")

    def value(self, field: str) -> Any:
        """Return a required field."""
        if field not in self.content:
            self.fail(field, "missing", f"add {field}")
        return self.content[field]

    def count(self, field: str) -> int:
        """Return a whole number of at least 1."""
        value = self.value(field)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.fail(field, f"expected a whole number from 1, got {_kind(value)}", "give how many there are")
        return value

    def node(self, field: str, count: int) -> int:
        """Return the index of a node."""
        value = self.value(field)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
            self.fail(
                field,
                f"expected a node from 0 to {count - 1}, got {_kind(value)}",
                "name a node, or raise nodes",
            )
        return value

    def key_node(self, key: str, count: int) -> int:
        """Return the index of a node that is given as a key."""
        if not key.isascii() or not key.isdigit() or not 0 <= int(key) < count or key != str(int(key)):
            self.fail(
                key,
                f"expected a node from 0 to {count - 1} as key, got {key!r}",
                "name a node, or raise nodes",
            )
        return int(key)

    def rate(self, field: str, *, positive: bool = False, whole: bool = False) -> float:
        """Return a finite number of at least zero; above zero if `positive`, integral if `whole`."""
        value = self.value(field)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            self.fail(
                field, f"expected a finite number, got {_kind(value)}", "give packets per slot, such as 1.0"
            )
        if value < 0 or (positive and value == 0):
            bound = "above zero" if positive else "from zero"
            self.fail(
                field, f"expected a number {bound}, got {value}", "leave it out, or give packets per slot"
            )
        if whole and value != int(value):
            self.fail(
                field,
                f"{value} packets a slot under a fixed law",
                "packets do not split: use poisson, or round it",
            )
        return float(value)

    def choice(self, field: str, allowed: Sequence[str]) -> str:
        """Return one of the allowed words."""
        value = self.value(field)
        if value not in allowed:
            self.fail(field, f"got {_kind(value)}", f"use {' or '.join(allowed)}")
        return str(value)

    def table(self, field: str, shape: str) -> Fields:
        """Return a field that is an object with at least one entry."""
        value = self.value(field)
        if not isinstance(value, dict) or not value:
            self.fail(field, f"expected a filled object, got {_kind(value)}", f"give {shape}")
        return Fields(value, self.file, self._place(field))

    def entries(self, field: str, shape: str) -> Iterator[Fields]:
        """Iterate over a field that is a list of at least one object."""
        value = self.value(field)
        if not isinstance(value, list) or not value:
            self.fail(field, f"expected a filled list, got {_kind(value)}", f"give {shape}")
        for number, entry in enumerate(value):
            yield Fields.of(entry, self.file, f"{self._place(field)}[{number}]")


def _kind(value: object) -> str:
    """Describe a value for an error: short values as JSON, objects and lists by kind."""
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "list"
        return f"an empty {kind}" if not value else f"a{'n' if kind == 'object' else ''} {kind}"
    return json.dumps(value)


def unreachable(sources: Iterable[int], destination: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """Return the sources from which no path over directed links leads to the destination."""
    reached, frontier = {destination}, [destination]
    while frontier:
        node = frontier.pop()
        found = [start for start, end in links if end == node and start not in reached]
        reached.update(found)
        frontier.extend(found)
    return [source for source in sources if source not in reached]
