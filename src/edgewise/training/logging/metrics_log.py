"""Metrics as a CSV file that a killed and resumed run fills with the rows of one that was never killed."""

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
    """Appends rows to a CSV file, one write per row; numbers are written so that they read back exactly.

    A column that first appears later extends the header, and the rows before it have an empty cell there. A
    checkpoint keeps `state_dict`; `load_state_dict` cuts off what was written after it.

    Args:
        path: the file; made with the first row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: list[str] = []
        self.rows = 0
        self._descriptor: int | None = None

    def append(self, row: Row) -> None:
        """Write one row; values missing from it are left empty."""
        new = [name for name in row if name not in self.columns]
        if new:
            self._extend(new)
        self._write(_line([_text(row[name]) if name in row else "" for name in self.columns]))
        self.rows += 1

    def sync(self) -> None:
        """Make every row so far survive a power cut."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; the next row opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def state_dict(self) -> dict[str, Any]:
        """How much there is: what a resumed run keeps."""
        return {"rows": self.rows, "columns": list(self.columns)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cut the file down to the rows and columns it had when `state` was taken."""
        self.close()
        self.rows, self.columns = int(state["rows"]), [str(name) for name in state["columns"]]
        if not self.columns:
            self.path.unlink(missing_ok=True)
            return
        kept = self._read()[: self.rows]
        if len(kept) < self.rows:
            log.warning("%s has %d rows, the checkpoint counts %d", self.path, len(kept), self.rows)
        self._rewrite(kept)

    def _extend(self, new: Sequence[str]) -> None:
        """Add columns; the file is rewritten whole, with empty cells in the rows so far."""
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
    """One line of CSV; a carriage return is quoted too, which Python's own writer forgets."""
    quoted = (f'"{cell.replace(chr(34), chr(34) * 2)}"' if SPECIAL.search(cell) else cell for cell in cells)
    return (",".join(quoted) or '""').encode() + b"\n"
