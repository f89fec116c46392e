"""Read files of data that anybody may have written: each gives data, or a DataError with file and place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import DataError

LARGEST = 1 << 28
"""Largest accepted size of a file of graphs, triples, networks or instances, in bytes."""
SHOWN = 40
"""Characters of a value that a message shows at most."""


def read(path: Path, *, largest: int = LARGEST, hint: str | None = None) -> bytes:
    """Read a file.

    Raises:
        DataError: it is not there, not a regular file, too large, or behind a link in a run folder.
    """
    try:
        return files.read_bytes(path, largest=largest)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist", hint=hint) from None
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"{path} cannot be read: {reason}", hint=hint) from error


def read_text(path: Path, *, largest: int = LARGEST, hint: str | None = None) -> str:
    """Read a file of UTF-8 text; raises DataError, with the line of a byte that is none."""
    return decode(read(path, largest=largest, hint=hint), path)


def read_json(path: Path, *, largest: int = files.LARGEST_JSON, hint: str | None = None) -> Any:
    """Read a JSON file; raises DataError, with the line where it is malformed."""
    return parse_json(read_text(path, largest=largest, hint=hint), path)


def decode(content: bytes, path: Path) -> str:
    """Return UTF-8 text without a byte-order mark; raises DataError for any other byte, and for zero."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place, what = error.start, f"byte {error.object[error.start]:#04x} is not UTF-8"
    else:
        if "\0" not in text:
            return text
        place, what = content.index(b"\0"), "a zero byte: this is no text"
    line = content.count(b"\n", 0, place) + 1
    raise DataError(f"{path}:{line}: {what}", hint="save the file as UTF-8 text")


def parse_json(text: str, path: Path | str) -> Any:
    """Parse JSON; raises DataError, with the line where it is malformed."""
    try:
        return files.parse_json(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    except ValueError as error:
        raise DataError(f"{path}: not accepted as JSON: {error}") from error


def check(path: Path, *, largest: int = files.LARGEST_TENSORS) -> Path:
    """Check a file that a library opens by its name, and return its path.

    Raises:
        OSError: as `files.open_to_read`.
    """
    files.close(files.open_to_read(path, largest=largest))
    return path


def shown(value: Any) -> str:
    """Return a value for a message: its beginning if it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or nested without end
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
