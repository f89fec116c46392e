"""Callbacks: how metrics.csv, events.jsonl, TensorBoard, the progress bar and users' own code follow a run.

A callback gets plain numbers and cannot change a result: random generators are restored after each call. One
that fails is reported once and left out from then on. Only the logs in the run folder must work: a run that
cannot write them stops.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise import plugins
from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.evaluation.result import Evaluation
from edgewise.runs.checkpoint import random_state

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
        checkpoint: from which the run resumed; None for a new run.
        seconds: returns the seconds spent so far over all processes of the run, by what they were spent on:
            `collecting`, `learning` and `evaluating`.
        share: returns the share of the time budget that is used; None if the budget is a number of frames.
    """

    path: Path
    name: str
    config: Mapping[str, Any]
    total_frames: int
    frames: int = 0
    checkpoint: Path | None = None
    seconds: Callable[[], dict[str, float]] = dict
    share: Callable[[], float | None] = lambda: None


class StopTraining(EdgewiseError):  # noqa: N818 - a stop on purpose
    """Raise this in a callback to end the run with a checkpoint after the current batch.

    Args:
        message: the reason, for the log of the run.
        hint: what to do next.
    """

    exit_code = 0

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


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
        """Called after each batch with its numbers, by the names of metrics.csv.

        Also called once before the first batch, with the evaluation at 0 frames, if the run has one.
        """

    def on_evaluation(self, frames: int, evaluation: Evaluation) -> None:
        """Called after each evaluation of the policy with every episode's measures."""

    def on_stage(self, frames: int, name: str) -> None:
        """Called when a stage of the curriculum begins."""

    def on_checkpoint(self, frames: int, path: Path) -> None:
        """Called after each checkpoint is saved."""

    def on_best(self, frames: int, metric: str, value: float) -> None:
        """Called when the checkpoint at `frames` is the best so far by a metric."""

    def on_end(self, frames: int, reason: str) -> None:
        """Called once, however the run ends.

        The reason is `done`, the name of a signal, the callback that raised `StopTraining`, or an error.
        """


class ResumableCallback(Callback):
    """A log that is part of the run folder, and resumes with the run.

    What it wrote after the checkpoint is removed on resume. The run stops if it cannot be written.
    """

    def sync(self) -> None:
        """Flush everything to disk; called before a checkpoint is written."""

    def clear(self) -> None:
        """Remove everything: the run starts from the beginning."""

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs to remove later entries."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remove what was written after `state`."""


class Callbacks:
    """Calls each of several callbacks in order.

    Args:
        logs: of the run folder, by name; their errors are raised.
        others: called after the logs; one that fails is dropped.

    Attributes:
        stop: class and message of the first callback that raised `StopTraining`; None before that.
    """

    def __init__(
        self, logs: Mapping[str, ResumableCallback] | None = None, others: Sequence[Callback] = ()
    ) -> None:
        self._logs = dict(logs or {})
        self._others = list(others)
        self._ended: list[Callback] = []
        self.stop: str | None = None

    def start(self, run: RunInfo) -> None:
        """Call `on_start`."""
        self._call("on_start", lambda callback: callback.on_start(run))

    def batch(self, frames: int, metrics: Metrics) -> None:
        """Call `on_batch`; each callback gets a copy of the numbers."""
        self._call("on_batch", lambda callback: callback.on_batch(frames, dict(metrics)))

    def evaluation(self, frames: int, evaluation: Evaluation) -> None:
        """Call `on_evaluation`."""
        self._call("on_evaluation", lambda callback: callback.on_evaluation(frames, evaluation))

    def stage(self, frames: int, name: str) -> None:
        """Call `on_stage`."""
        self._call("on_stage", lambda callback: callback.on_stage(frames, name))

    def checkpoint(self, frames: int, path: Path) -> None:
        """Call `on_checkpoint`."""
        self._call("on_checkpoint", lambda callback: callback.on_checkpoint(frames, path))

    def best(self, frames: int, metric: str, value: float) -> None:
        """Call `on_best`."""
        self._call("on_best", lambda callback: callback.on_best(frames, metric, value))

    def end(self, frames: int, reason: str) -> None:
        """Call `on_end` of every callback that has not had it, then raise the first error of a log."""
        failed = []
        for each in self._logs.values():
            if each not in self._ended:
                self._ended.append(each)
                try:
                    each.on_end(frames, reason)
                except OSError as error:
                    failed.append(error)
        others, self._others = self._others, []
        for other in others:
            self._try(other, "on_end", lambda callback: callback.on_end(frames, reason))
        if failed:
            raise failed[0]

    def sync(self) -> None:
        """Flush the logs to disk."""
        for each in self._logs.values():
            each.sync()

    def clear(self) -> None:
        """Clear the logs."""
        for each in self._logs.values():
            each.clear()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each log that has one, by name."""
        states = {name: each.state_dict() for name, each in self._logs.items()}
        return {name: state for name, state in states.items() if state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the logs."""
        for name, each in self._logs.items():
            if name in state:
                each.load_state_dict(state[name])

    def _call(self, name: str, call: Callable[[Callback], None]) -> None:
        for each in self._logs.values():
            call(each)
        self._others = [other for other in self._others if self._try(other, name, call)]

    def _try(self, callback: Callback, name: str, call: Callable[[Callback], None]) -> bool:
        """Call one callback, and return whether it is to be called again."""
        try:
            with random_state.untouched():
                call(callback)
        except StopTraining as request:
            asked = type(callback).__name__
            self.stop = self.stop or (f"{asked}: {request.message}" if request.message else asked)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            log.warning(
                "%s.%s failed and is left out from now on: %r in %s:%s",
                *(type(callback).__name__, name, error, place.filename, place.lineno),
            )
            return False
        return True


def checked_callbacks(callbacks: Sequence[Callback]) -> list[Callback]:
    """Return the callbacks as a list.

    Raises:
        ConfigError: one of them is not an object of a subclass of `Callback`.
    """
    for each in callbacks:
        if not isinstance(each, Callback):
            is_class = isinstance(each, type) and issubclass(each, Callback)
            raise ConfigError(
                f"callbacks: got {each!r}, expected objects of subclasses of Callback",
                hint=f"give an object: {each.__name__}()" if is_class else None,
            )
    return list(callbacks)


def make_loggers(references: Sequence[str]) -> list[Callback]:
    """Build loggers by name or address.

    Raises:
        ConfigError: there is none, its code may not be imported, or it cannot be built without arguments.
    """
    loggers = []
    for reference in references:
        found = plugins.find("logger", reference)
        try:
            loggers.append(found())
        except EdgewiseError:
            raise
        except Exception as error:
            raise ConfigError(
                f"the logger {reference} cannot be built without arguments: {error!r}"
            ) from error
    return checked_callbacks(loggers)
