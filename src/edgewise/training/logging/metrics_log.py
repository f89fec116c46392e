"""Metrics as a CSV file; a killed and resumed run writes the same rows as one that was never killed."""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewise.training import durable

Row = Mapping[str, float | int | str]

SPECIAL = re.compile(r'[,"\r\n]')

log = logging.getLogger(__name__)


class MetricsLog:
    """Appends rows to a CSV file, one write per row; numbers are written without loss of precision.

    A new column extends the header, and earlier rows get an empty cell. A checkpoint holds `state_dict`;
    `load_state_dict` removes rows that were written after it.

    Args:
        path: the file; created with the first row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: list[str] = []
        self.rows = 0
        self._descriptor: int | None = None

    def append(self, row: Row) -> None:
        """Append one row; missing values are left empty."""
        new = [name for name in row if name not in self.columns]
        if new:
            self._extend(new)
        self._write(_line([_text(row[name]) if name in row else "" for name in self.columns]))
        self.rows += 1

    def sync(self) -> None:
        """Flush all rows to disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; the next row opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def state_dict(self) -> dict[str, Any]:
        """Return the number of rows and the columns."""
        return {"rows": self.rows, "columns": list(self.columns)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Truncate the file to the rows and columns of `state`."""
        self.close()
        self.rows, self.columns = int(state["rows"]), [str(name) for name in state["columns"]]
        if not self.columns:
            self.path.unlink(missing_ok=True)
            return
        kept = self._read()[: self.rows]
        if len(kept) < self.rows:
            log.warning("%s has %d rows, but the checkpoint has %d", self.path, len(kept), self.rows)
        self._rewrite(kept)

    def _extend(self, new: Sequence[str]) -> None:
        """Add columns by rewriting the file, with empty cells in the rows so far."""
        kept = self._read() if self.columns else []
        self.close()
        self.columns += new
        self._rewrite(kept)

    def _read(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return []
        with open(self.path, newline="", encoding="utf-8", errors="replace") as file:
            return list(csv.DictReader(file, restval=""))

    def _rewrite(self, rows: Sequence[Mapping[str, str]]) -> None:
        lines = [_line(self.columns), *(_line([row.get(name, "") for name in self.columns]) for row in rows)]
        durable.replace_whole(self.path, b"".join(lines))

    def _write(self, line: bytes) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        durable.write_fully(self._descriptor, line)


def _text(value: float | int | str) -> str:
    return value if isinstance(value, str) else repr(value)


def _line(cells: Sequence[str]) -> bytes:
    """Format one line of CSV; carriage returns are quoted too, unlike by Python's csv writer."""
    quoted = (f'"{cell.replace(chr(34), chr(34) * 2)}"' if SPECIAL.search(cell) else cell for cell in cells)
    return (",".join(quoted) or '""').encode() + b"\n"
