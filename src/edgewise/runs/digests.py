"""Record the SHA-256 of the files of a run, so that damage to them is noticed. Never imports torch.

Checkpoints have hashes of their own. Of the other files, `digests.jsonl` in the run folder has one line per
write: name, size and SHA-256. A log that grows is recorded as far as it was written when the line was added,
and may be longer. The record finds damage, not forgery: who can write the folder can write the record too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgewise.config import files

FILE = "digests.jsonl"
RECORDED = re.compile(
    r"(config|versions|code|graphs|card|ablations)\.json|graphs\.safetensors|checkpoints/best\.json"
    r"|(evaluations|replays)/[^/]+\.json"
)
"""Names of files that are recorded whenever they are written; logs record themselves."""
LOGS = re.compile(r"(metrics|timing)\.csv|events\.jsonl")
MISSING = "is missing"
SHOWN = 3
"""Largest number of missing files of one folder that are named one by one."""
CHUNK = 1 << 20
LARGEST = 1 << 36
"""Largest accepted size of a recorded file, in bytes."""


@dataclass(frozen=True)
class Digest:
    """One line of the record.

    Args:
        file: name inside the run folder.
        bytes: number of bytes that were hashed.
        sha256: of these bytes.
        grows: whether the file may be longer by now.
        rewritten: whether a file that grows was replaced at this moment; it may still have its older content
            if the process was killed then.
    """

    file: str
    bytes: int
    sha256: str
    grows: bool = False
    rewritten: bool = False


def replace(path: Path, content: bytes) -> None:
    """Replace a file atomically, as `files.replace`, and record it if it is one of a run's."""
    with recorded(path, content):
        files.replace(path, content)


@contextmanager
def recorded(path: Path, content: bytes) -> Iterator[None]:
    """Record the file that is written inside the context.

    A new file is recorded afterwards, and another one before it is replaced. If the process is killed in
    between, the file either has no record or is as an earlier line of the record says.
    """
    run = files.run_of(path)
    name = "" if run is None else path.relative_to(run).as_posix()
    if run is None or not RECORDED.fullmatch(name):
        yield
    elif path.exists():
        record(run, name, content)
        yield
    else:
        yield
        record(run, name, content)


def record(run: Path, name: str, content: bytes) -> None:
    """Record a whole file of a run."""
    append(run, _digest(name, content))


def line(name: str, content: bytes) -> bytes:
    """Return the line of the record for a whole file."""
    return _line(_digest(name, content))


def _digest(name: str, content: bytes) -> Digest:
    return Digest(name, len(content), hashlib.sha256(content).hexdigest())


def _line(digest: Digest) -> bytes:
    return json.dumps(asdict(digest)).encode() + b"\n"


def is_recorded(name: str) -> bool:
    """Return whether a file of a run folder, by its name inside it, belongs in the record."""
    return bool(RECORDED.fullmatch(name) or LOGS.fullmatch(name))


def append(run: Path, digest: Digest) -> None:
    """Add a line to the record of a run, after an incomplete one that a killed process may have left."""
    descriptor = files.open_to_append(run / FILE)
    try:
        size = os.fstat(descriptor).st_size
        start = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
        os.write(descriptor, start + _line(digest))
    finally:
        os.close(descriptor)


def damaged_files(run: Path, *names: str) -> Iterator[tuple[str, str]]:
    """Yield name and fault of each file that is not as it was written, or that is missing.

    Args:
        run: the run folder.
        names: files to check; all that are recorded if none is given.
    """
    missing: dict[str, list[str]] = {}
    for name, digests in _read(run).items():
        fault = _fault(run / name, digests) if not names or name in names else None
        if fault == MISSING:
            missing.setdefault(name.rpartition("/")[0], []).append(name)
        elif fault is not None:
            yield name, fault
    for folder, lost in missing.items():
        if len(lost) > SHOWN:
            yield folder, f"has lost {len(lost)} files, such as {lost[0]}"
        else:
            yield from ((name, MISSING) for name in lost)


def check_record(path: Path) -> None:
    """Raise OSError or ValueError if a line of a record is damaged."""
    lines = files.read_text(path, largest=files.LARGEST_TABLE).split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        if line and _parse(line) is None:
            raise ValueError(f"line {number} is not a digest")
    if lines[-1]:
        raise ValueError("its last line is incomplete")
    if len(lines) < 2:
        raise ValueError("it is empty, so that damage to other files is not noticed")


class GrowingDigest:
    """The running SHA-256 of a log.

    Args:
        path: the log, in a run folder or elsewhere; only logs of a run folder are recorded.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._bytes, self._hash = path, 0, hashlib.sha256()

    def sha256(self) -> str:
        """Return the SHA-256 of the log as it is now."""
        self._update()
        return self._hash.hexdigest()

    def record(self) -> None:
        """Add the state of the log to the record of its run."""
        self._update()
        self._append(rewritten=False)

    def replace(self, content: bytes) -> None:
        """Record that the log is about to be replaced by `content`."""
        self._bytes, self._hash = len(content), hashlib.sha256(content)
        self._append(rewritten=True)

    def _append(self, *, rewritten: bool) -> None:
        run = files.run_of(self._path)
        if run is not None:
            name = self._path.relative_to(run).as_posix()
            state = Digest(name, self._bytes, self._hash.hexdigest(), grows=True, rewritten=rewritten)
            append(run, state)

    def _update(self) -> None:
        """Hash what was appended since the last call; all of a log that is shorter than it was."""
        try:
            descriptor = files.open_to_read(self._path, largest=files.LARGEST_TABLE)
        except FileNotFoundError:
            self._bytes, self._hash = 0, hashlib.sha256()
            return
        try:
            if os.fstat(descriptor).st_size < self._bytes:
                self._bytes, self._hash = 0, hashlib.sha256()
            while piece := os.pread(descriptor, CHUNK, self._bytes):
                self._hash.update(piece)
                self._bytes += len(piece)
        finally:
            os.close(descriptor)


def _fault(path: Path, digests: list[Digest]) -> str | None:
    newest = digests[-1]
    if not os.path.lexists(path):
        return MISSING if newest.bytes else None
    accepted = digests if not newest.grows else digests[-2:] if newest.rewritten else [newest]
    try:
        descriptor = files.open_to_read(path, largest=LARGEST)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    try:
        size = os.fstat(descriptor).st_size
        fitting = [one for one in accepted if size == one.bytes or (one.grows and size > one.bytes)]
        hashes = {count: _sha256(descriptor, count) for count in {one.bytes for one in fitting}}
    finally:
        os.close(descriptor)
    if any(hashes[one.bytes] == one.sha256 for one in fitting):
        return None
    return f"is not as it was written: its SHA-256 is not that in {FILE}"


def _sha256(descriptor: int, count: int) -> str:
    """Return the SHA-256 of the first `count` bytes of a file."""
    found, start = hashlib.sha256(), 0
    while start < count and (piece := os.pread(descriptor, min(CHUNK, count - start), start)):
        found.update(piece)
        start += len(piece)
    return found.hexdigest()


def _read(run: Path) -> dict[str, list[Digest]]:
    """Return the record of a run by file, oldest first; lines that are damaged are left out."""
    try:
        content = files.read_bytes(run / FILE, largest=files.LARGEST_TABLE)
    except OSError:
        return {}
    found: dict[str, list[Digest]] = {}
    for line in content.decode(errors="replace").split("\n"):
        digest = _parse(line)
        if digest is not None:
            found.setdefault(digest.file, []).append(digest)
    return found


def _parse(line: str) -> Digest | None:
    try:
        entry: dict[str, Any] = files.parse_json(line)
        digest = Digest(**entry)
    except (TypeError, ValueError):
        return None
    if not isinstance(digest.file, str) or not isinstance(digest.bytes, int) or digest.bytes < 0:
        return None
    return digest if is_recorded(digest.file) else None
