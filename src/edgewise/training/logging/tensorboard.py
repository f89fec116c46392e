"""Metrics as TensorBoard events, written at once: the usual writer pickles each event into a queue."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary


class TensorBoardLog:
    """One event file of one process.

    Args:
        folder: where event files are.
        step: where the run is; TensorBoard forgets what older files say about this step and later ones.
    """

    def __init__(self, folder: Path, *, step: int) -> None:
        folder.mkdir(exist_ok=True)
        self._writer = EventsWriter(str(folder / "events"), f".{os.getpid()}.{step}")
        start = SessionLog(status=SessionLog.START)
        self._writer.write_event(Event(wall_time=time.time(), step=step, session_log=start))
        self._writer.flush()

    def write(self, values: Mapping[str, float | int | str], *, step: int) -> None:
        """Add the numbers among `values` at `step`."""
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
