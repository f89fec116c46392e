"""The list of faults that `make mutate` plants: one file per package in `faults/`, checked before use."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml
from yaml.constructor import SafeConstructor

FOLDER = Path(__file__).parent / "faults"
PACKAGE = Path("src/edgewise")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StaleFaultError(Exception):
    """A fault whose text is not in its file, or is there more than once."""


@dataclass(frozen=True)
class Fault:
    """A change of one file that some test must notice.

    Attributes:
        file: path within the package, such as `envs/base.py`.
        what: what goes wrong, in a few words.
        old: text that occurs exactly once in the file.
        new: text that replaces it.
        listed_in: the file of the list, for messages.
    """

    file: str
    what: str
    old: str
    new: str
    listed_in: str

    @property
    def name(self) -> str:
        """A name that changes with the fault and not with its place in the list."""
        return f"{self.file}#{hashlib.sha256(f'{self.old}>{self.new}'.encode()).hexdigest()[:8]}"

    @property
    def safe_name(self) -> str:
        """The name as that of a file."""
        return self.name.replace("/", "|")

    def path(self, root: Path) -> Path:
        """Return the file that this fault changes in a copy of the project at `root`."""
        return root / PACKAGE / self.file

    def planted(self, source: str) -> str:
        """Return `source` with the fault.

        Raises:
            StaleFaultError: `old` is not in `source` once, `new` equals it, or the result is not Python.
        """
        found = source.count(self.old)
        if found != 1:
            raise StaleFaultError(
                f"{self.listed_in}: the fault '{self.what}' no longer applies: its text occurs {found} "
                f"times in {self.file}, not once: {self.old!r}"
            )
        changed = source.replace(self.old, self.new)
        if changed == source:
            raise StaleFaultError(f"{self.listed_in}: the fault '{self.what}' in {self.file} changes nothing")
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise StaleFaultError(
                f"{self.listed_in}: the fault '{self.what}' makes {self.file} unreadable: {error}"
            ) from None
        return changed

    def lines(self, source: str) -> Lines:
        """Return the lines of the statements in which `source` and the planted text differ."""
        start = source.index(self.old)
        same = next(
            (place for place, (a, b) in enumerate(zip(self.old, self.new, strict=False)) if a != b),
            min(len(self.old), len(self.new)),
        )
        if (
            same == len(self.new) and self.old[same:].strip()
        ):  # what follows is removed: its first line, not the end of the one before
            same = len(self.old) - len(self.old[same:].lstrip())
        line = source.count("\n", 0, start + same) + 1
        return Lines(source, line)


@dataclass(frozen=True)
class Lines:
    """The innermost statement at a line of a source text.

    Attributes:
        source: the text.
        line: a line number, from 1.
    """

    source: str
    line: int

    @cached_property
    def _path(self) -> list[ast.AST]:
        """The nested statements that contain the line, outermost first."""
        path: list[ast.AST] = [ast.parse(self.source)]
        while True:
            inner = [
                node
                for node in ast.walk(path[-1])
                if node is not path[-1] and isinstance(node, ast.stmt) and _holds(node, self.line)
            ]
            if not inner:
                return path
            path.append(min(inner, key=lambda node: (_first(node), -_last(node))))

    @property
    def numbers(self) -> set[int]:
        """The lines of the statement; of a compound statement only its header."""
        node = self._path[-1]
        if isinstance(node, ast.Module):
            return {self.line}
        body = getattr(node, "body", None)
        last = _first(body[0]) - 1 if isinstance(body, list) and body else _last(node)
        return set(range(_first(node), max(last, _first(node)) + 1))

    @property
    def runs_at_import(self) -> bool:
        """Whether the statement is outside every function, or the header of one."""
        functions = [node for node in self._path[:-1] if isinstance(node, ast.FunctionDef)]
        return not functions


def _first(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])  # type: ignore[attr-defined]


def _last(node: ast.AST) -> int:
    return node.end_lineno  # type: ignore[attr-defined]


def _holds(node: ast.AST, line: int) -> bool:
    return _first(node) <= line <= _last(node)


def load(folder: Path = FOLDER) -> list[Fault]:
    """Read the whole list: `{file: [{what, old, new}, ...]}` in every YAML file of `folder`.

    Entries of a file that is named twice add up; YAML would drop the first.
    """
    faults = []
    for path in sorted(folder.glob("*.yaml")):
        document, constructor = yaml.compose(path.read_text(), Loader=LOADER), SafeConstructor()
        for file, entries in document.value:
            for entry in constructor.construct_document(entries):
                faults.append(Fault(file=file.value, listed_in=path.name, **entry))
    return faults


def problems(faults: list[Fault], root: Path) -> list[str]:
    """Return a message for every fault that cannot be planted in the project at `root`."""
    found, seen = [], set()
    for fault in faults:
        if not fault.path(root).is_file():
            found.append(f"{fault.listed_in}: there is no file {fault.file} for the fault '{fault.what}'")
            continue
        try:
            fault.planted(fault.path(root).read_text())
        except StaleFaultError as stale:
            found.append(str(stale))
        if fault.name in seen:
            found.append(f"{fault.listed_in}: the fault '{fault.what}' of {fault.file} is listed twice")
        seen.add(fault.name)
    return found
