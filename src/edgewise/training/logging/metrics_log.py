"""Metrics and timings as CSV files; a killed and resumed run has the same metrics as one never killed."""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.evaluation.result import Evaluation
from edgewise.runs import durable
from edgewise.runs.digests import GrowingDigest
from edgewise.training.callbacks import Metrics, ResumableCallback, RunInfo

SPECIAL = re.compile(r'[,"\r\n]')

log = logging.getLogger(__name__)


class MetricsLog(ResumableCallback):
    """Appends rows to a CSV file, one write per row; numbers are written without loss of precision.

    A new column extends the header, and earlier rows get an empty cell. A checkpoint holds `state_dict`;
    `load_state_dict` removes rows that were written after it.

    Args:
        path: the file; created with the first row.
        every: batches per row; a batch with an evaluation always has a row.
    """

    def __init__(self, path: Path, *, every: int = 1) -> None:
        self.path = path
        self._due = Due(every)
        self.columns: list[str] = []
        self.rows = 0
        self._descriptor: int | None = None
        self._digest = GrowingDigest(path)

    def on_evaluation(self, frames: int, evaluation: Evaluation) -> None:  # noqa: ARG002 - only that there is one
        """Write the next row whatever its number."""
        self._due.mark()

    def on_batch(self, frames: int, metrics: Metrics) -> None:  # noqa: ARG002 - a column of the metrics
        """Append a row of metrics if one is due."""
        if self._due(metrics):
            self.append(metrics)

    def on_end(self, frames: int, reason: str) -> None:  # noqa: ARG002 - the event log has both
        """Close the file, and record its SHA-256."""
        self.close()
        self._digest.record()

    def append(self, row: Metrics) -> None:
        """Append one row; missing values are left empty."""
        new = [name for name in row if name not in self.columns]
        if new:
            self._extend(new)
        self._write(_line([_text(row[name]) if name in row else "" for name in self.columns]))
        self.rows += 1

    def sync(self) -> None:
        """Flush all rows to disk, and record their SHA-256."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)
        self._digest.record()

    def close(self) -> None:
        """Close the file; the next row opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def clear(self) -> None:
        """Remove the file."""
        self.load_state_dict({"rows": 0, "columns": []})

    def state_dict(self) -> dict[str, Any]:
        """Return the number of rows, the columns, and the SHA-256 of the file."""
        return {"rows": self.rows, "columns": list(self.columns), "sha256": self._digest.sha256()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Truncate the file to the rows and columns of `state`; a warning says if it was damaged."""
        self.close()
        self.rows, self.columns = int(state["rows"]), [str(name) for name in state["columns"]]
        if not self.columns:
            self._digest.replace(b"")
            self.path.unlink(missing_ok=True)
            return
        kept = self._read()[: self.rows]
        if len(kept) < self.rows:
            log.warning("%s has %d rows, but the checkpoint has %d", self.path, len(kept), self.rows)
        self._rewrite(kept)
        if len(kept) == self.rows and state.get("sha256") not in (None, self._digest.sha256()):
            log.warning("%s differs from what the checkpoint recorded: it was damaged or edited", self.path)

    def _extend(self, new: Sequence[str]) -> None:
        """Add columns by rewriting the file, with empty cells in the rows so far."""
        kept = self._read() if self.columns else []
        self.close()
        self.columns += new
        self._rewrite(kept)

    def _read(self) -> list[dict[str, str]]:
        try:
            descriptor = files.open_to_read(self.path, largest=files.LARGEST_TABLE)
        except FileNotFoundError:
            return []
        with os.fdopen(descriptor, newline="", encoding="utf-8", errors="replace") as file:
            try:
                return list(csv.DictReader(file, restval=""))
            except csv.Error as error:
                log.warning("%s cannot be read: %s", self.path, error)
                return []

    def _rewrite(self, rows: Sequence[Mapping[str, str]]) -> None:
        lines = [_line(self.columns), *(_line([row.get(name, "") for name in self.columns]) for row in rows)]
        content = b"".join(lines)
        self._digest.replace(content)
        durable.replace_whole(self.path, content)

    def _write(self, line: bytes) -> None:
        if self._descriptor is None:
            self._descriptor = files.open_to_append(self.path)
        durable.write_fully(self._descriptor, line)


class TimingLog(MetricsLog):
    """The seconds spent so far, one row per row of metrics.

    They are not in metrics.csv, whose rows do not depend on how often a run was killed and resumed.
    """

    def on_start(self, run: RunInfo) -> None:
        """Keep the clock of the run."""
        self._seconds = run.seconds

    def on_batch(self, frames: int, metrics: Metrics) -> None:
        """Append a row of seconds if one is due."""
        if self._due(metrics):
            self.append({"frames": frames, **self._seconds()})

    def state_dict(self) -> dict[str, Any]:
        """Return the number of rows and the columns; not the content, on which no result depends."""
        return {"rows": self.rows, "columns": list(self.columns)}


class Due:
    """Decides which batches have a row: each with an evaluation, and one in `every`.

    Args:
        every: batches per row.
    """

    def __init__(self, every: int) -> None:
        self._every, self._marked = every, False

    def mark(self) -> None:
        """Give the next batch a row."""
        self._marked = True

    def __call__(self, metrics: Metrics) -> bool:
        """Return whether the batch with these metrics has a row."""
        marked, self._marked = self._marked, False
        return marked or int(metrics["iteration"]) % self._every == 0


def _text(value: float | int | str) -> str:
    return value if isinstance(value, str) else repr(value)


def _line(cells: Sequence[str]) -> bytes:
    """Format one line of CSV; carriage returns are quoted too, unlike by Python's csv writer."""
    quoted = (f'"{cell.replace(chr(34), chr(34) * 2)}"' if SPECIAL.search(cell) else cell for cell in cells)
    return (",".join(quoted) or '""').encode() + b"\n"
