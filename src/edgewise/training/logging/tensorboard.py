"""Metrics as TensorBoard events, written synchronously; the usual writer pickles events into a queue."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary


class TensorBoardLog:
    """The TensorBoard event file of one process.

    Args:
        folder: where event files are.
        step: current step of the run; TensorBoard ignores values of older files at this step and later.
    """

    def __init__(self, folder: Path, *, step: int) -> None:
        folder.mkdir(exist_ok=True)
        self._writer = EventsWriter(str(folder / "events"), f".{os.getpid()}.{step}")
        start = SessionLog(status=SessionLog.START)
        self._writer.write_event(Event(wall_time=time.time(), step=step, session_log=start))
        self._writer.flush()

    def write(self, values: Mapping[str, float | int | str], *, step: int) -> None:
        """Write the numbers among `values` at `step`."""
        numbers = [
            Summary.Value(tag=tag, simple_value=value)
            for tag, value in values.items()
            if not isinstance(value, str)
        ]
        self._writer.write_event(Event(wall_time=time.time(), step=step, summary=Summary(value=numbers)))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
