"""Code has an identity: which files a run's extensions came from, and whether they have changed since."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.plugins.addresses import import_statements
from edgewise.plugins.places import is_beside, real_file, root_of


@dataclass(frozen=True)
class CodeRecord:
    """One extension that a run uses.

    Args:
        address: as the run's config names it.
        file: where it was, when it was recorded.
        sha256: of that file.
        beside: SHA-256 of the files beside it that it imports, directly or not, by relative path.
    """

    address: str
    file: str
    sha256: str
    beside: Mapping[str, str]

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return asdict(self)


def record_code(extensions: Mapping[str, Any]) -> list[CodeRecord]:
    """Return where extensions come from; what ships with edgewise or has no file is left out.

    Args:
        extensions: address to the class or function.
    """
    records = []
    for address, extension in extensions.items():
        name = getattr(extension, "__module__", "")
        file = real_file(sys.modules.get(name))
        if file is None or name.partition(".")[0] == "edgewise":
            continue
        beside = {os.path.relpath(other, file.parent): _sha256(other) for other in _imports(file)}
        records.append(CodeRecord(address, str(file), _sha256(file), dict(sorted(beside.items()))))
    return records


def changed_code(recorded: Iterable[Mapping[str, Any]], current: Iterable[CodeRecord]) -> list[str]:
    """Return, in words, which recorded files are not as they were."""
    now = {record.address: record for record in current}
    changes = []
    for then in recorded:
        address = str(then.get("address"))
        record = now.pop(address, None)
        if record is None:
            changes.append(f"{address} no longer comes from a file, so it cannot be compared")
            continue
        if record.sha256 != then.get("sha256"):
            changes.append(f"{record.file} has changed since the run began")
        beside = then.get("beside")
        before = beside if isinstance(beside, Mapping) else {}
        for name in sorted({*before, *record.beside}):
            place = Path(record.file).parent / name
            if name not in record.beside:
                changes.append(f"{place}, which the run imported, is not imported any more")
            elif name not in before:
                changes.append(f"{place} is imported, and was not when the run began")
            elif record.beside[name] != before[name]:
                changes.append(f"{place} has changed since the run began")
    return changes + [f"{address} was not recorded when the run began" for address in now]


def _imports(file: Path) -> set[Path]:
    """Return the files beside a file that it imports, directly or through each other."""
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        here = waiting.pop()
        for other in _imported_by(here):
            if other != file and other not in found and is_beside(other, file):
                found.add(other)
                waiting.append(other)
    return found


def _imported_by(file: Path) -> Iterator[Path]:
    """Return the files that a file's import statements name, wherever in it they stand."""
    for level, name in import_statements(file):
        folder = file.parents[level - 1] if 0 < level <= len(file.parents) else None
        if name:
            yield from _files_of(name, folder, file)


def _files_of(name: str, folder: Path | None, importer: Path) -> Iterator[Path]:
    """Return the files of a dotted name and of the packages around it: as imported, else as they would be."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        module = sys.modules.get(".".join(parts[:count])) if folder is None else None
        known = real_file(module)
        if known is not None:
            yield known
        if module is not None:
            continue
        for root in (folder,) if folder is not None else (importer.parent, root_of(importer).parent):
            place = root.joinpath(*parts[:count])
            for candidate in (place.with_suffix(".py"), place / "__init__.py"):
                if candidate.is_file():
                    yield candidate.resolve()


def _sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(files.read_bytes(path)).hexdigest()
