"""Show the progress of a study: one bar with the running jobs on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn
from rich.table import Column

from edgewise.training.logging.cropped_column import CroppedColumn

log = logging.getLogger(__name__)

SECONDS = 10.0
"""Time between two log lines."""
BAR = 16
"""Width of the bar."""
LONGEST_NAME = 24
"""Letters of a study's name that are shown."""


@dataclass(frozen=True)
class Status:
    """What is shown of a study.

    Args:
        share: of all frames that are trained, in [0, 1].
        ended: runs that have ended.
        planned: runs in all.
        running: names of running jobs with their share of frames.
        note: such as the best value so far.
    """

    share: float
    ended: int
    planned: int
    running: Sequence[tuple[str, float]] = ()
    note: str = ""

    def __str__(self) -> str:
        now = ", ".join(f"{name} {share:.0%}" for name, share in self.running)
        parts = (f"{self.ended} of {self.planned} runs", now, self.note)
        return "; ".join(part for part in parts if part)


class Display(Protocol):
    """A display of the progress of a study."""

    def start(self, name: str) -> None:
        """Show the display."""

    def update(self, status: Status) -> None:
        """Show a status."""

    def close(self) -> None:
        """Stop."""


class StudyBar:
    """A progress bar over the frames of all runs, with the running jobs beside it."""

    def __init__(self, console: Console | None = None) -> None:
        columns = (
            CroppedColumn("{task.description}", longest=LONGEST_NAME),
            BarColumn(bar_width=BAR, table_column=Column(no_wrap=True)),
            TaskProgressColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
            CroppedColumn("{task.fields[shown]}"),
        )
        self._progress = Progress(
            *columns, console=console or Console(stderr=True), redirect_stdout=False, refresh_per_second=4
        )

    def start(self, name: str) -> None:
        """Show the bar."""
        self._task = self._progress.add_task(name, total=1.0, shown="")
        self._progress.start()

    def update(self, status: Status) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=status.share, shown=str(status))

    def close(self) -> None:
        """Stop the bar where it is."""
        self._progress.stop()


class StudyLines:
    """A log line every few seconds and for every run that ends."""

    def start(self, name: str) -> None:
        """Log the name of the study."""
        self._next, self._ended = 0.0, -1
        log.info("%s", name)

    def update(self, status: Status) -> None:
        """Log the status if a run has ended or some seconds have passed."""
        now = time.monotonic()
        if status.ended != self._ended or now >= self._next:
            self._next, self._ended = now + SECONDS, status.ended
            log.info("%s", status)

    def close(self) -> None:
        """Do nothing."""


def make_display() -> Display:
    """Build a bar on a terminal, and log lines elsewhere."""
    return StudyBar() if sys.stderr.isatty() else StudyLines()
