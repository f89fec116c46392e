"""Log of events with their time, one JSON object per line; never truncated, so it shows every resume."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.training import durable


class EventLog:
    """Appends events to a file of JSON lines.

    Args:
        path: the file; an incomplete last line, left by a killed process, is removed with the next event.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, event: str, fields: Mapping[str, Any]) -> None:
        """Append one event: `start`, `resume`, `stage`, `evaluation`, `checkpoint`, `best` or `stop`."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": moment, "event": event, **fields}, ensure_ascii=False)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _drop_incomplete_line(descriptor, self._path)
            durable.write_fully(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)


def _drop_incomplete_line(descriptor: int, path: Path) -> None:
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.ftruncate(descriptor, path.read_bytes().rfind(b"\n") + 1)
