"""Show the progress of a run: a bar on a terminal or in a notebook, log lines every few seconds elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Column

from edgewise.training.callbacks import Callback, Metrics, RunInfo
from edgewise.training.logging.cropped_column import CroppedColumn

log = logging.getLogger(__name__)


SHOWN = {"episode/return": "return", "evaluation/return": "evaluated", "stage": "stage"}
"""Metrics that are shown, with their labels."""
NARROW = 100
"""Columns below which bar and name give room to the values."""
BAR, NARROW_BAR = 24, 8
"""Width of the bar."""
LONGEST_NAME, NARROW_NAME = 22, 12
"""Letters of a run's name that are shown."""


class ProgressReporter(Protocol):
    """A display of progress."""

    def start(self, frames: int, total: int, name: str) -> None:
        """Start at `frames` of `total`."""

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """Move to `frames`, and show the values `shown` by name."""

    def close(self) -> None:
        """Stop: the run is over or was stopped."""


class ShowProgress(Callback):
    """Shows how far a run is, how fast it runs, and its returns; in seconds if its budget is one of time.

    Args:
        display: a bar or log lines, as fits where stderr goes, if not given.
    """

    def __init__(self, display: ProgressReporter | None = None) -> None:
        self._given, self._display = display, NO_PROGRESS

    def on_start(self, run: RunInfo) -> None:
        """Show the display."""
        self._frames, self._time, self._share = run.frames, time.perf_counter(), run.share
        share, training = run.share(), run.config.get("training", {})
        is_timed = share is not None
        self._display = self._given or make_progress(unit="s" if is_timed else "frames")
        self._seconds = round(60 * (training.get("cpu_minutes") or training.get("minutes") or 0))
        done = round((share or 0.0) * self._seconds) if is_timed else run.frames
        self._display.start(done, self._seconds if is_timed else run.total_frames, run.name)

    def on_batch(self, frames: int, metrics: Metrics) -> None:
        """Move the display."""
        now = time.perf_counter()
        rate = (frames - self._frames) / max(now - self._time, 1e-9)
        self._frames, self._time = frames, now
        shown = {label: _text(metrics[name]) for name, label in SHOWN.items() if name in metrics}
        share, speed = self._share(), {"frames/s": f"{rate:,.0f}"}
        if share is None:
            self._display.update(frames, shown | speed)
        else:
            share = min(share, 1.0)
            passed = {"time": f"{share:.0%}", "frames": f"{frames:,}"}
            self._display.update(round(share * self._seconds), shown | passed | speed)

    def on_end(self, frames: int, reason: str) -> None:  # noqa: ARG002 - the log has both
        """Stop the display where it is."""
        self._display.close()


class ProgressBar:
    """A progress bar with frames per second, time left and current values."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        is_narrow = console.width < NARROW
        self._progress = Progress(
            CroppedColumn("{task.description}", longest=NARROW_NAME if is_narrow else LONGEST_NAME),
            BarColumn(bar_width=NARROW_BAR if is_narrow else BAR, table_column=Column(no_wrap=True)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
            CroppedColumn("{task.fields[shown]}"),
            console=console,
            redirect_stdout=False,
            refresh_per_second=4,
        )

    def start(self, frames: int, total: int, name: str) -> None:
        """Show the bar."""
        self._task = self._progress.add_task(name, total=total, completed=frames, shown="")
        self._progress.start()

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=frames, shown=_join(shown))

    def close(self) -> None:
        """Stop the bar where it is."""
        self._progress.stop()


class ProgressLines:
    """A log line every few seconds, and one at the end; on stderr if the program has not set up logging.

    Args:
        seconds: between two lines.
        unit: what is counted.
    """

    def __init__(self, seconds: float = 10.0, *, unit: str = "frames") -> None:
        self._seconds, self._unit, self._next, self._line = seconds, unit, 0.0, ""
        self._handler: logging.Handler | None = None

    def start(self, frames: int, total: int, name: str) -> None:
        """Log the name of the run and where it starts."""
        if not log.hasHandlers():
            self._handler = logging.StreamHandler(sys.stderr)
            log.addHandler(self._handler)
            log.setLevel(logging.INFO)
        self._total, self._first, self._began = total, frames, time.monotonic()
        self._next = self._began + self._seconds
        log.info("%s: %s of %s %s", name, f"{frames:,}", f"{total:,}", self._unit)

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """Log the progress if `seconds` have passed since the last line."""
        now = time.monotonic()
        counted = f"{frames:,} of {self._total:,} {self._unit}"
        if frames > self._first:  # before the first frame, nobody knows how long the rest takes
            left = max(self._total - frames, 0) * (now - self._began) / (frames - self._first)
            counted = f"{counted}, {left:.0f} s left"
        self._line = f"{counted}, {_join(shown)}" if shown else counted
        if now >= self._next:
            self._next = now + self._seconds
            log.info(self._line)
            self._line = ""

    def close(self) -> None:
        """Log the last line if it was not logged yet."""
        if self._line:
            log.info(self._line)
        if self._handler is not None:
            log.removeHandler(self._handler)
            log.setLevel(logging.NOTSET)
            self._handler = None


class NoProgress:
    """Shows nothing."""

    def start(self, frames: int, total: int, name: str) -> None:
        """Do nothing."""

    def update(self, frames: int, shown: Mapping[str, str]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


NO_PROGRESS: ProgressReporter = NoProgress()


def make_progress(*, unit: str = "frames") -> ProgressReporter:
    """Build a progress bar on a terminal or in a notebook, and log lines with this unit otherwise."""
    return ProgressBar() if sys.stderr.isatty() or _in_notebook() else ProgressLines(unit=unit)


def _in_notebook() -> bool:
    """Return whether rich can draw into the output of a notebook's cell, for which it needs ipywidgets."""
    return Console(stderr=True).is_jupyter and find_spec("ipywidgets") is not None


def _text(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _join(shown: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in shown.items())
