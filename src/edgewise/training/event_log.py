"""What happened to a run and when: one JSON object per line, never cut, so that kills and resumes show."""

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
        path: the file; a last line that a kill left unfinished is dropped.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            os.ftruncate(self._descriptor, content.rfind(b"\n") + 1)

    def write(self, event: str, fields: Mapping[str, Any]) -> None:
        """Add one event: `start`, `resume`, `stage`, `evaluation`, `checkpoint`, `best` or `stop`."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": moment, "event": event, **fields}, ensure_ascii=False)
        durable.write_fully(self._descriptor, f"{line}\n".encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
