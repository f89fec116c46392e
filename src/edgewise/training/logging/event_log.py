"""Log of events with their time, one JSON object per line; never truncated, so it shows every resume."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.evaluation.result import Evaluation
from edgewise.runs import durable
from edgewise.runs.digests import GrowingDigest
from edgewise.training.callbacks import ResumableCallback, RunInfo
from edgewise.training.run_evaluator import mean_measures

CHUNK = 1 << 16
"""Bytes that are read at a time to find the last complete line."""


class EventLog(ResumableCallback):
    """Appends events to a file of JSON lines.

    Args:
        path: the file; an incomplete last line, left by a killed process, is removed with the next event.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._digest = path, GrowingDigest(path)

    def on_start(self, run: RunInfo) -> None:
        """Log that the run starts, or from which checkpoint it resumes."""
        if run.checkpoint is None:
            self.write("start", {"frames": 0, "total_frames": run.total_frames})
        else:
            self.write("resume", {"frames": run.frames, "checkpoint": run.checkpoint.name})

    def on_evaluation(self, frames: int, evaluation: Evaluation) -> None:
        """Log the mean of each measure."""
        self.write("evaluation", {"frames": frames, **mean_measures(evaluation)})

    def on_stage(self, frames: int, name: str) -> None:
        """Log the stage."""
        self.write("stage", {"frames": frames, "name": name})

    def on_checkpoint(self, frames: int, path: Path) -> None:
        """Log the name of the checkpoint."""
        self.write("checkpoint", {"frames": frames, "checkpoint": path.name})

    def on_best(self, frames: int, metric: str, value: float) -> None:
        """Log the best evaluation so far."""
        self.write("best", {"frames": frames, "metric": metric, "value": value})

    def on_end(self, frames: int, reason: str) -> None:
        """Log why the run ended."""
        self.write("stop", {"frames": frames, "reason": reason})
        self._digest.record()

    def sync(self) -> None:
        """Record the SHA-256 of the log."""
        self._digest.record()

    def write(self, event: str, fields: Mapping[str, Any]) -> None:
        """Append one event: `start`, `resume`, `stage`, `evaluation`, `checkpoint`, `best` or `stop`."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": moment, "event": event, **fields}, ensure_ascii=False)
        descriptor = files.open_to_append(self._path)
        try:
            _drop_incomplete_line(descriptor)
            durable.write_fully(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)


def _drop_incomplete_line(descriptor: int) -> None:
    size = end = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return
    while end:
        start = max(0, end - CHUNK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            os.ftruncate(descriptor, start + found + 1)
            return
        end = start
    os.ftruncate(descriptor, 0)
