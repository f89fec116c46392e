"""Check every file of a run folder, and say which are whole."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from edgewise.config import files
from edgewise.config.errors import EdgewiseError
from edgewise.runs import digests
from edgewise.runs.checkpoint import contents, store
from edgewise.runs.folder import RunFolder


@dataclass(frozen=True)
class CheckedFile:
    """One file or checkpoint of a run.

    Args:
        name: path inside the run folder.
        fault: what is wrong with it; None if it is whole.
    """

    name: str
    fault: str | None


Reader = Callable[[Path], object]
"""Reads a file, and raises an error with the reason if it is damaged."""


def verify_run(path: Path, *, readers: Mapping[str, Reader]) -> list[CheckedFile]:
    """Check every checkpoint and every file of a run; nothing is changed.

    Args:
        path: a run folder.
        readers: of the files that packages above this one write, by the pattern of their names.

    Raises:
        DataError: it is not a run folder.
        CheckpointError: another version of edgewise wrote it in a format that this one cannot read.
    """
    folder = RunFolder(path)
    return [
        CheckedFile(str(file.relative_to(folder.path)), fault) for file, fault in _faults(folder, readers)
    ]


def _faults(folder: RunFolder, readers: Mapping[str, Reader]) -> Iterator[tuple[Path, str | None]]:
    for link in files.links_in(folder.path):
        yield link, "it is a symbolic link, and a run folder must not contain any"
    damaged = dict(digests.damaged_files(folder.path))
    for file, fault in _checked_files(folder, readers):
        name = file.relative_to(folder.path).as_posix()
        yield file, fault or (f"it {damaged[name]}" if name in damaged else None)
        damaged.pop(name, None)
    for name, fault in damaged.items():
        yield folder.path / name, f"it {fault}"


def _checked_files(folder: RunFolder, readers: Mapping[str, Reader]) -> Iterator[tuple[Path, str | None]]:
    """Yield every file and checkpoint with what is wrong with its content by itself."""
    for name, check in FILES.items():
        if os.path.lexists(folder.path / name) or name in NEEDED:
            yield folder.path / name, _fault(folder.path / name, check)
    for pattern, reader in readers.items():
        for file in sorted(folder.path.glob(pattern)):
            yield file, _fault(file, reader)
    saved = store.saved(folder.checkpoints)
    for checkpoint in saved:
        yield checkpoint, contents.fault(checkpoint)
    if os.path.lexists(folder.checkpoints / store.BEST):
        yield folder.checkpoints / store.BEST, _fault(folder.checkpoints / store.BEST, _check_best)
    if not saved:
        yield folder.checkpoints, "there is no checkpoint"


def _fault(path: Path, check: Reader) -> str | None:
    """Return why a check fails, in one line; None if it does not."""
    try:
        check(path)
    except EdgewiseError as error:
        return error.message.removeprefix(f"{path}: ")
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    except ValueError as error:
        return str(error).partition("\n")[0]
    return None


def _check_object(path: Path) -> None:
    if not isinstance(files.read_json(path), dict):
        raise ValueError("it is not a JSON object")


def _check_table(path: Path) -> None:
    text = files.read_text(path, largest=files.LARGEST_TABLE)
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""))
    except csv.Error as error:
        raise ValueError(f"it is not a table: {error}") from error
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} cells instead of {len(header)}")
    if not text.endswith("\n"):
        raise ValueError("its last line is incomplete")


def _check_events(path: Path) -> None:
    lines = files.read_text(path, largest=files.LARGEST_TABLE).split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            is_event = "event" in files.parse_json(line)
        except (TypeError, ValueError) as error:
            raise ValueError(f"line {number} is not JSON: {error}") from error
        if not is_event:
            raise ValueError(f"line {number} is not an event")
    if lines[-1]:
        raise ValueError("its last line is incomplete")


def _check_best(path: Path) -> None:
    found = files.read_json(path)
    name = found.get("checkpoint") if isinstance(found, dict) else None
    if not isinstance(name, str) or not store.NAME.fullmatch(name):
        raise ValueError("it names no checkpoint")
    if not (path.parent / name).is_dir():
        raise ValueError(f"{name} no longer exists")


def _check_graphs(path: Path) -> None:
    record = files.read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("splits"), dict):
        raise ValueError("it is not a record of graphs")


FILES: dict[str, Reader] = {
    "card.json": _check_object,
    "code.json": files.read_json,
    "config.json": _check_object,
    "versions.json": _check_object,
    "metrics.csv": _check_table,
    "timing.csv": _check_table,
    "events.jsonl": _check_events,
    digests.FILE: digests.check_record,
    "graphs.json": _check_graphs,
    "ablations.json": _check_object,
}
NEEDED = ("config.json", "versions.json", digests.FILE)
