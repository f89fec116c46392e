"""Metrics as TensorBoard events, written synchronously; the usual writer pickles events into a queue."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from edgewise.config import files
from edgewise.evaluation.result import Evaluation
from edgewise.training.callbacks import Callback, Metrics, RunInfo
from edgewise.training.logging.metrics_log import Due

if TYPE_CHECKING:
    from tensorboardX.event_file_writer import EventsWriter


class TensorBoardLog(Callback):
    """Writes metrics and timings as TensorBoard events, one file per process.

    Args:
        folder: where event files are; created with the first row.
        every: batches per row; a batch with an evaluation always has a row.
    """

    def __init__(self, folder: Path, *, every: int = 1) -> None:
        self._folder, self._due = folder, Due(every)
        self._writer: EventsWriter | None = None

    def on_start(self, run: RunInfo) -> None:
        """Keep the clock of the run."""
        self._seconds = run.seconds

    def on_evaluation(self, frames: int, evaluation: Evaluation) -> None:  # noqa: ARG002 - only that there is one
        """Write the next row whatever its number."""
        self._due.mark()

    def on_batch(self, frames: int, metrics: Metrics) -> None:
        """Write the numbers of a batch if a row is due."""
        if self._due(metrics):
            self.write({**metrics, **self._seconds()}, step=frames)

    def on_end(self, frames: int, reason: str) -> None:  # noqa: ARG002 - the event log has both
        """Close the file."""
        if self._writer is not None:
            self._writer.close()

    def write(self, values: Mapping[str, float | int | str], *, step: int) -> None:
        """Write the numbers among `values` at `step`."""
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        writer = self._open(step)
        numbers = [
            Summary.Value(tag=tag, simple_value=value)
            for tag, value in values.items()
            if not isinstance(value, str)
        ]
        writer.write_event(Event(wall_time=time.time(), step=step, summary=Summary(value=numbers)))
        writer.flush()

    def _open(self, step: int) -> EventsWriter:
        """Return the writer; a new file makes TensorBoard ignore older values at `step` and later."""
        if self._writer is None:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog

            files.check_place(self._folder)
            self._folder.mkdir(exist_ok=True)
            self._writer = EventsWriter(str(self._folder / "events"), f".{os.getpid()}.{step}")
            start = SessionLog(status=SessionLog.START)
            self._writer.write_event(Event(wall_time=time.time(), step=step, session_log=start))
            self._writer.flush()
        return self._writer
