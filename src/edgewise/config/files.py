"""Open the files of a run folder, which may come from somebody else. Never imports torch.

No symbolic link inside a run folder is followed, neither for reading nor for writing. What is read has a
bounded size; JSON has a bounded depth, and numbers of bounded length that are finite.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

LARGEST_JSON = 1 << 26
"""Largest accepted size of a JSON file, in bytes."""
LARGEST_TABLE = 1 << 30
"""Largest accepted size of a CSV file or an event log, in bytes."""
MAX_DEPTH = 64
"""Largest accepted nesting of a JSON file."""
MAX_DIGITS = 300
"""Largest accepted length of a number in a JSON file."""
LARGEST_TENSORS = 1 << 36
"""Largest accepted size of a file of tensors, in bytes; it is mapped and not read."""
LEVELS = 4
"""How deep files are in a run folder at most."""

_SMALL = 1 << 16
_BESIDE_CONFIG = ("checkpoints", "evaluations", "replays", "events.jsonl", "metrics.csv")


def links_in(folder: Path) -> Iterator[Path]:
    """Yield every symbolic link inside a folder, at any depth; none is followed."""
    for place, folders, files in os.walk(folder):
        for name in sorted((*folders, *files)):
            path = Path(place, name)
            if path.is_symlink():
                yield path


def run_of(path: Path) -> Path | None:
    """Return the run folder that a file is in, whether the file exists or not; None if it is in none."""
    return next((folder for folder in reversed(list(path.parents)[:LEVELS]) if _is_run(folder)), None)


def check_place(path: Path) -> bool:
    """Check that no link is on the way from a run folder to `path`, whether that exists or not.

    Returns:
        Whether `path` is inside a run folder.

    Raises:
        OSError: `path`, or a folder between it and the run folder, is a symbolic link.
    """
    run = run_of(path)
    if run is None:
        return False
    for place in (path, *path.parents):
        if place == run:
            break
        if place.is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link, and not followed in a run folder", str(place))
    return True


def open_to_read(path: Path, *, largest: int = LARGEST_JSON, follow: bool = True) -> int:
    """Open a regular file of at most `largest` bytes.

    Args:
        path: of the file.
        largest: size that is accepted, in bytes.
        follow: whether `path` may be a link where it is in no run folder.

    Raises:
        OSError: it cannot be opened, is not a regular file, is too large, or is behind a link.
    """
    no_follow = os.O_NOFOLLOW if check_place(path) or not follow else 0
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | no_follow)
    try:
        size = _regular(descriptor, path).st_size
        if size > largest:
            raise OSError(
                errno.EFBIG, f"has {size} bytes, more than the {largest} that are accepted", str(path)
            )
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def close(descriptor: int) -> None:
    """Close a descriptor of this module."""
    os.close(descriptor)


def open_folder(folder: Path) -> int:
    """Open a folder itself, to flush or lock it."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def open_to_append(path: Path) -> int:
    """Open a regular file for reading and appending; create it if there is none.

    Raises:
        OSError: it cannot be opened, is not a regular file, is behind a symbolic link, or is a hard link to a
            file that has another name as well.
    """
    check_place(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    try:
        if _regular(descriptor, path).st_nlink != 1:
            raise OSError(errno.EMLINK, "is a hard link to a file with another name as well", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_bytes(path: Path, *, largest: int = LARGEST_JSON, follow: bool = True) -> bytes:
    """Read a regular file; raises OSError as `open_to_read`."""
    with os.fdopen(open_to_read(path, largest=largest, follow=follow), "rb") as file:
        size = os.fstat(file.fileno()).st_size  # the kernel says 0 for files of its own
        return file.read(min(largest, max(size, _SMALL)))


def read_text(path: Path, *, largest: int = LARGEST_JSON) -> str:
    """Read a file of UTF-8 text; raises OSError as `open_to_read`, or ValueError."""
    return read_bytes(path, largest=largest).decode()


def read_json(path: Path, *, largest: int = LARGEST_JSON) -> Any:
    """Read a JSON file; raises OSError as `open_to_read`, or ValueError as `parse_json`."""
    return parse_json(read_text(path, largest=largest))


def parse_json(text: str, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse JSON from a source that is not trusted; `pairs` makes an object of its names and values.

    Raises:
        ValueError: it is malformed, nested too deeply, or has a number that is too long or not finite.
    """
    try:
        value = json.loads(
            text, parse_int=_integer, parse_float=_number, parse_constant=_refuse, object_pairs_hook=pairs
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """Raise ValueError if dicts and lists are nested deeper than `MAX_DEPTH`."""
    level, depth = [value], 0
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]


def replace(path: Path, content: bytes) -> None:
    """Replace a file atomically.

    Raises:
        OSError: it cannot be written, or is behind a link in a run folder.
    """
    check_place(path)
    staging = path.with_name(f".{path.name}.{os.getpid()}.stage")
    staging.unlink(missing_ok=True)
    try:
        with open(staging, "xb") as file:
            file.write(content)
        staging.replace(path)
    except BaseException:
        staging.unlink(missing_ok=True)
        raise


def _is_run(folder: Path) -> bool:
    """Return whether a folder has files of a run."""
    if os.path.lexists(folder / "versions.json"):
        return True
    others = any(os.path.lexists(folder / name) for name in _BESIDE_CONFIG)
    return others and os.path.lexists(folder / "config.json")


def _regular(descriptor: int, path: Path) -> os.stat_result:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return status


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} digits, more than {MAX_DIGITS}")
    return int(text)


def _number(text: str) -> float:
    value = float(text) if len(text) <= MAX_DIGITS else math.inf
    if not math.isfinite(value):
        raise ValueError(f"a number is too large or too long: {text[:20]}")
    return value


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")
