"""Handle Ctrl-C: the first one lets a run finish its batch, save and stop; the second stops it at once.

SIGTERM does the same, and so does SIGHUP, which a closed terminal or a lost connection sends, often twice.
"""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

log = logging.getLogger(__name__)


class StopRequest:
    """A context manager that handles SIGINT, SIGTERM and SIGHUP; outside the main thread it does nothing.

    A process started with `nohup` ignores SIGHUP, and continues to do so.

    Args:
        finishing: what the run finishes before it stops, for the log.

    Attributes:
        received: name of the first signal, None before it.
    """

    def __init__(self, finishing: str = "this batch") -> None:
        self._finishing = finishing
        self.received: str | None = None
        self._old_handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._old_handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the system's signature
        if self.received is not None:
            if number == signal.SIGHUP:
                return
            raise KeyboardInterrupt
        self.received = signal.Signals(number).name
        log.warning("%s: finishing %s and saving; a second one stops at once", self.received, self._finishing)
