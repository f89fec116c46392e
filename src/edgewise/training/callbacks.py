"""Callbacks: how code outside the trainer listens to a run, in numbers.

metrics.csv, events.jsonl, TensorBoard and the progress bar are callbacks too. A callback that fails is reported
once and left out from then on: it never ends a run, and no result depends on it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.config.errors import EdgewiseError
from edgewise.evaluation.result import Evaluation

log = logging.getLogger(__name__)

Metrics = Mapping[str, float | int | str]


@dataclass(frozen=True)
class RunInfo:
    """What a callback may know of its run.

    Args:
        path: the run folder.
        name: of the run.
        config: the resolved config as plain values.
        total_frames: to train.
        frames: trained when this process began; above zero for a resumed run.
    """

    path: Path
    name: str
    config: Mapping[str, Any]
    total_frames: int
    frames: int = 0


class StopTraining(EdgewiseError):  # noqa: N818 - a stop on purpose
    """Raise this in a callback to end the run after a clean checkpoint."""

    exit_code = 0


class Callback:
    """Listens to a run; override what you need. A logger is a callback that writes numbers somewhere.

    Example:
        >>> class Print(ew.Callback):
        ...     def on_batch(self, frames, metrics):
        ...         print(frames, metrics.get("episode/return"))
        >>> ew.train("graphwalk-ppo", callbacks=[Print()])
    """

    def on_start(self, run: RunInfo) -> None:
        """Called once, before the first batch of this process."""

    def on_batch(self, frames: int, metrics: Metrics) -> None:
        """Called after each batch with its numbers, by the names of metrics.csv."""

    def on_evaluation(self, frames: int, evaluation: Evaluation) -> None:
        """Called after each evaluation of the policy with every episode's measures."""

    def on_checkpoint(self, frames: int, path: Path) -> None:
        """Called after each checkpoint is saved."""

    def on_end(self, frames: int, reason: str) -> None:
        """Called once, however the run ends: `done`, a signal's name, or what went wrong."""


class Callbacks:
    """Calls each of several callbacks in order, and drops those that fail.

    Args:
        callbacks: in the order in which they are called.
    """

    def __init__(self, callbacks: Sequence[Callback] = ()) -> None:
        self._callbacks = list(callbacks)

    def start(self, run: RunInfo) -> None:
        """Call `on_start`."""
        self._call("on_start", lambda callback: callback.on_start(run))

    def batch(self, frames: int, metrics: Metrics) -> None:
        """Call `on_batch`."""
        self._call("on_batch", lambda callback: callback.on_batch(frames, metrics))

    def evaluation(self, frames: int, evaluation: Evaluation) -> None:
        """Call `on_evaluation`."""
        self._call("on_evaluation", lambda callback: callback.on_evaluation(frames, evaluation))

    def checkpoint(self, frames: int, path: Path) -> None:
        """Call `on_checkpoint`."""
        self._call("on_checkpoint", lambda callback: callback.on_checkpoint(frames, path))

    def end(self, frames: int, reason: str) -> None:
        """Call `on_end`."""
        self._call("on_end", lambda callback: callback.on_end(frames, reason))

    def _call(self, name: str, call: Callable[[Callback], None]) -> None:
        for callback in list(self._callbacks):
            try:
                call(callback)
            except StopTraining:
                raise
            except Exception as error:
                self._callbacks.remove(callback)
                log.warning(
                    "%s.%s failed and is left out from now on: %r", type(callback).__name__, name, error
                )
