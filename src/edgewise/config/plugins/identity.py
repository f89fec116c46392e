"""Code has an identity: which files a run's extensions came from, and whether they have changed since."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CodeRecord:
    """One extension that a run uses.

    Args:
        address: as the run's config names it.
        file: where it was, when it was recorded.
        sha256: of that file.
        beside: SHA-256 of the files of the same folder that were imported with it, by their relative path.
    """

    address: str
    file: str
    sha256: str
    beside: Mapping[str, str]

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {**asdict(self), "beside": dict(self.beside)}


def record_code(extensions: Mapping[str, Any]) -> list[CodeRecord]:
    """Return where extensions come from; what ships with edgewise or has no file is left out.

    Args:
        extensions: address to the class or function.
    """
    records = []
    for address, extension in extensions.items():
        module = sys.modules.get(getattr(extension, "__module__", ""))
        file = getattr(module, "__file__", None)
        if module is None or file is None or module.__name__.partition(".")[0] == "edgewise":
            continue
        path = Path(file).resolve()
        records.append(CodeRecord(address, str(path), _sha256(path), _beside(path)))
    return records


def changed_code(recorded: Iterable[Mapping[str, Any]], current: Iterable[CodeRecord]) -> list[str]:
    """Return, in words, which recorded files are not as they were."""
    now = {record.address: record for record in current}
    changes = []
    for then in recorded:
        record = now.get(str(then.get("address")))
        if record is None:
            continue
        if record.sha256 != then.get("sha256"):
            changes.append(f"{record.file} has changed since the run began")
        beside = then.get("beside")
        for name, digest in beside.items() if isinstance(beside, Mapping) else ():
            here = Path(record.file).parent / str(name)
            if not here.is_file():
                changes.append(f"{here}, which the run imported, is gone")
            elif _sha256(here) != digest:
                changes.append(f"{here} has changed since the run began")
    return changes


def _beside(path: Path) -> dict[str, str]:
    """The imported files of a folder and below, other than `path` itself and installed packages."""
    folder, found = path.parent, {}
    import sysconfig

    installed = {Path(sysconfig.get_paths()[key]).resolve() for key in ("stdlib", "purelib", "platlib")}
    if any(folder == place or place in folder.parents for place in installed) and folder in installed:
        return {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        other = Path(file).resolve()
        inside = folder in other.parents and not any(
            place in other.parents and place not in folder.parents and place != folder for place in installed
        )
        if inside and other != path:
            found[str(other.relative_to(folder))] = _sha256(other)
    return dict(sorted(found.items()))


def _sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()
