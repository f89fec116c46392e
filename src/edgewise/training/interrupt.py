"""Ctrl-C asks a run to finish what it is at, save and stop; a second one stops it at once."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)

log = logging.getLogger(__name__)


class StopRequest:
    """Listens to SIGINT and SIGTERM while it is entered; elsewhere than in the main thread it hears nothing.

    Args:
        finishing: what the run finishes before it stops.

    Attributes:
        received: the name of the first signal, None before it.
    """

    def __init__(self, finishing: str = "this batch") -> None:
        self._finishing = finishing
        self.received: str | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the system's signature
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = signal.Signals(number).name
        log.warning("%s: finishing %s and saving; once more stops at once", self.received, self._finishing)
