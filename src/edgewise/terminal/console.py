"""Output of verbs: results to stdout as text or JSON, everything else to stderr."""

from __future__ import annotations

import errno
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

SHORTEST = 12
"""Letters of the last column of a table that are shown at least."""


class Console:
    """Output streams of a verb.

    Args:
        as_json: whether to write results as JSON documents instead of text.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def show(self, data: Any, text: str) -> None:
        """Write a result: `data` if results are JSON, else `text`."""
        self.write(json.dumps(finite(data), indent=2, ensure_ascii=False) if self.as_json else text)

    def write(self, text: str) -> None:
        """Write text to stdout; raises OSError if it is closed or full."""
        _write(sys.stdout, text)

    def note(self, text: str) -> None:
        """Write a message to stderr; it is not part of the result."""
        _write(sys.stderr, text)


def _write(stream: TextIO | None, text: str) -> None:
    """Write a line; characters that the terminal's encoding does not have are written as escapes."""
    if stream is None or stream.closed:  # Python has none for a descriptor that was closed before
        raise OSError(errno.EBADF, "the output is closed")
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def finite(value: Any) -> Any:
    """Replace NaN and infinite numbers, which JSON does not have, by None."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def window() -> int | None:
    """Return the columns of the terminal that results go to; None if they go to a file or another program."""
    if sys.stdout is None or sys.stdout.closed or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def fitting(header: Sequence[str], rows: Sequence[Sequence[str]], *, needed: int) -> int:
    """Return how many columns of a table fit into the window, `needed` of them at least."""
    width = window()
    if width is None:
        return len(header)
    used = -2
    for column, name in enumerate(header):
        used += 2 + max(len(name), *(len(str(row[column])) for row in rows))
        if used > width and column >= needed:
            return column
    return len(header)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format rows as a table with aligned columns: numbers to the right, text to the left.

    In a window, text of the last column that does not fit ends with an ellipsis.

    Example:
        >>> print(table(["name", "frames"], [["a", 12], ["long", 3]]))
        name  frames
        a         12
        long       3
    """
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    right = [
        bool(rows) and all(isinstance(row[column], int | float) for row in rows)
        for column in range(len(header))
    ]
    lines = (
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        for row in cells
    )
    return "\n".join(
        _cropped(line.rstrip(), before=sum(widths[:-1]) + 2 * (len(widths) - 1)) for line in lines
    )


def _cropped(line: str, *, before: int) -> str:
    """Shorten a line to the window, unless more than its last column would be lost."""
    width = window()
    if width is None or len(line) <= width or before + SHORTEST > width:
        return line
    return f"{line[: width - 1]}…"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
