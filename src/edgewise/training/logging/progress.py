"""Where a run is, for whoever watches: a bar on a terminal, a line now and then otherwise."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Is told about every batch."""

    def start(self, frames: int, total: int, name: str) -> None:
        """A run is at `frames` of `total`."""

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """The run is at `frames`; `shown` says how it does."""

    def close(self) -> None:
        """The run is over or has stopped."""


class Bar:
    """A progress bar with frames per second, time left, and how the run does."""

    def __init__(self, console: Console | None = None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[shown]}"),
            console=console or Console(stderr=True),
            redirect_stdout=False,
            refresh_per_second=4,
        )

    def start(self, frames: int, total: int, name: str) -> None:
        """Show the bar."""
        self._task = self._progress.add_task(name, total=total, completed=frames, shown="")
        self._progress.start()

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=frames, shown=_words(shown))

    def close(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()


class Lines:
    """A line to the log every so many seconds, and one at the end.

    Args:
        seconds: between two lines.
        unit: what is counted.
    """

    def __init__(self, seconds: float = 10.0, *, unit: str = "frames") -> None:
        self._seconds, self._unit, self._next, self._line = seconds, unit, 0.0, ""

    def start(self, frames: int, total: int, name: str) -> None:
        """Say what begins."""
        self._total, self._first, self._began = total, frames, time.monotonic()
        self._next = self._began + self._seconds
        log.info("%s: %s of %s %s", name, f"{frames:,}", f"{total:,}", self._unit)

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """Say where the run is, if it is time."""
        now = time.monotonic()
        rate = (frames - self._first) / max(now - self._began, 1e-9)
        left = max(self._total - frames, 0) / max(rate, 1e-9)
        counted = f"{frames:,} of {self._total:,} {self._unit}, {left:.0f} s left"
        self._line = f"{counted}, {_words(shown)}" if shown else counted
        if now >= self._next:
            self._next = now + self._seconds
            log.info(self._line)
            self._line = ""

    def close(self) -> None:
        """Say where the run ended."""
        if self._line:
            log.info(self._line)


class Silence:
    """Shows nothing."""

    def start(self, frames: int, total: int, name: str) -> None:
        """Nothing."""

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def watcher(*, unit: str = "frames") -> Watcher:
    """A bar where errors go to a terminal, lines that name the unit otherwise."""
    return Bar() if sys.stderr.isatty() else Lines(unit=unit)


def _words(shown: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in shown.items())
