"""The training loop: collect, learn, evaluate, log and save until all frames are used or the run is stopped.

A run resumes bit for bit because of the order within an iteration: a checkpoint is written only after
everything that the next iteration depends on is final. Rows that a killed run logged after its last
checkpoint are removed when it resumes.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from edgewise.config.errors import CheckpointError, EdgewiseError, Interrupted, NumericalStop
from edgewise.config.run import RunConfig
from edgewise.config.seeds import derive_seed
from edgewise.runs.checkpoint import random_state
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.checkpoint.serialise import State
from edgewise.runs.code import command
from edgewise.runs.folder import RunFolder
from edgewise.scale.processes.group import ALONE, Group
from edgewise.training import rank_state
from edgewise.training.callbacks import Callback, Callbacks, RunInfo
from edgewise.training.curriculum import Curriculum
from edgewise.training.fitting import check_fit, identity
from edgewise.training.interrupt import StopRequest
from edgewise.training.iteration import Clock, Iteration
from edgewise.training.logging.event_log import EventLog
from edgewise.training.logging.metrics_log import MetricsLog, TimingLog
from edgewise.training.logging.tensorboard import TensorBoardLog
from edgewise.training.parts import Parts
from edgewise.training.run_evaluator import RunEvaluator

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
"""Errors of a disk that is full, read-only or broken."""

DONE = "done"
"""The reason of a run that ended because all frames are trained."""
UNTRAINED = "not trained"
"""The reason of a run that was saved before its first batch."""

log = logging.getLogger(__name__)


class Trainer:
    """Trains the parts of a run, with any algorithm.

    Where several processes train together, all of them go through the same iterations. The one with rank 0
    evaluates, logs and decides; a checkpoint has the state of each.

    Args:
        config: of the run.
        parts: built from the config.
        folder: of the run, locked by the caller.
        callbacks: called after the logs of the run folder, in this order; by rank 0 only.
        group: the processes that train together.

    Attributes:
        frames: environment steps so far, summed over worlds.
        batches: batches so far.

    Example:
        >>> with folder.locked():
        ...     Trainer(config, parts, folder).run()
    """

    def __init__(
        self,
        config: RunConfig[Any, Any, Any],
        parts: Parts,
        folder: RunFolder,
        *,
        callbacks: Sequence[Callback] = (),
        group: Group = ALONE,
    ) -> None:
        self.config, self.parts, self.folder, self._group = config, parts, folder, group
        self.frames, self.batches = 0, 0
        self._callbacks = _with_logs(callbacks, folder.path, config) if group.first else Callbacks()
        self._curriculum = Curriculum(config.training.curriculum, parts.env)
        self._iteration = Iteration(config.training, parts, folder.path, group=group)
        self._evaluator = RunEvaluator(config, parts, folder)
        self._restored: Path | None = None
        self._is_new_best = False
        self._saved_at = time.monotonic()
        self._time_is_up = False

    def run(self) -> None:
        """Train until `training.total_frames` is reached, or the minutes of training are used up.

        Raises:
            Interrupted: on SIGINT, SIGTERM or SIGHUP; the run was saved after the current batch.
            NumericalStop: a number was not finite; the batch is saved in the run folder.
            CheckpointError: the run could not be saved.
        """
        torch.set_num_threads(self.config.threads)
        with StopRequest() as stop:
            try:
                reason = self._train(stop)
                self._callbacks.end(self.frames, reason)
            except BaseException as error:
                self._end_after(error)
                if isinstance(error, OSError) and error.errno in UNWRITABLE:
                    raise self._unwritable(error) from error
                raise
        if reason == stop.received:
            raise self._interrupted(reason)
        if reason != DONE:
            log.info(
                "stopped by %s after %d frames, saved in %s",
                reason,
                self.frames,
                self._iteration.last_checkpoint,
            )

    def begin(self) -> None:
        """Evaluate and save the algorithm as it is, without training, so that `restore` and `run` go on."""
        torch.set_num_threads(self.config.threads)
        self._callbacks.start(self._info())
        self._begin()
        self._report_best()
        self._callbacks.end(self.frames, UNTRAINED)

    def restore(self, path: Path | None = None) -> Path | None:
        """Restore a checkpoint, so that `run` continues from it.

        Args:
            path: the checkpoint; the newest valid one if not given.

        Returns:
            The checkpoint, or None if the run has none yet: it then starts from the beginning.

        Raises:
            CheckpointError: it is damaged, or does not fit the parts or the processes of this run.
        """
        folder = self.folder.checkpoints
        path = self._group.broadcast(self._newest(path) if self._group.first else None)
        if path is None:
            return None
        path = Path(path)
        state = rank_state.load(path, self._group)
        check_fit(path, state, config=self.config, parts=self.parts)
        try:
            self._load(state)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise CheckpointError(f"checkpoint {path} does not fit this run: {error!r}") from error
        self._restored = self._iteration.last_checkpoint = path
        if not self._group.first:
            return path
        for other in checkpoint.set_aside(folder, newer_than=self.frames):
            log.warning("a checkpoint newer than %s is kept as %s", path.name, other)
        self._callbacks.load_state_dict(state["trainer"]["log"])
        for name, (then, now) in self.folder.changed_versions().items():
            log.warning("%s was %s when this run started and is %s now: numbers may differ", name, then, now)
        self._reset_missing_best()
        self._is_new_best = self._mark_best()
        return path

    def _newest(self, path: Path | None) -> str | None:
        """Return the path of the checkpoint to restore; None if the run has none yet."""
        folder = self.folder.checkpoints
        if path is None and not checkpoint.saved(folder):
            return None
        return str(checkpoint.latest(folder) if path is None else path)

    @property
    def _finished(self) -> bool:
        if self._iteration.share_of_time is not None:
            return self._time_is_up
        return self.frames >= self.config.training.total_frames

    def _train(self, stop: StopRequest) -> str:
        """Train until the end or until the run is asked to stop; return the reason why it ended."""
        self._callbacks.start(self._info())
        if self._restored is None:
            self._begin()
        self._report_best()
        while not self._finished:
            signal, asked = self._stop_reasons(stop.received, self._callbacks.stop)
            reason = signal or asked
            stop.received = signal or stop.received  # one that came meanwhile counts at the next batch
            if reason is not None:
                self._save()
                return reason
            self._iterate()
        return DONE

    def _stop_reasons(self, signal: str | None, asked: str | None) -> tuple[str | None, str | None]:
        """Return the first signal, and the first request of a callback, that any process has received."""
        signals, requests = zip(*self._group.gather([signal, asked]), strict=True)
        return next(filter(None, signals), None), next(filter(None, requests), None)

    def _end_after(self, error: BaseException) -> None:
        """End the callbacks after an error, which another one of a log does not replace."""
        reason = error.message if isinstance(error, NumericalStop) else _described(error)
        try:
            self._callbacks.end(self.frames, reason)
        except OSError as another:
            log.warning("the end of the run could not be logged: %s", another)

    def _begin(self) -> None:
        """Seed, evaluate and save, once before the first batch."""
        seed, rank = self.config.seed, self._group.rank
        random_state.seed(derive_seed(seed, f"rank {rank}") if rank else seed)
        self._callbacks.clear()
        self._curriculum.begin()
        self._log_stage()
        if not self._baselines_last:
            self._evaluate_baselines()
        if self.config.evaluation.every is not None:
            self._callbacks.batch(0, {"frames": 0, "iteration": 0, **self._evaluate()})
        self._save()

    def _iterate(self) -> None:
        """Run one iteration, from collecting a batch to saving the checkpoint."""
        before, stage = self.frames, self._curriculum.stage
        size, numbers = self._iteration.next(before)
        self.frames, self.batches = before + size, self.batches + 1
        self._check_time()
        row: dict[str, float | int | str] = {"frames": self.frames, "iteration": self.batches}
        row |= {} if stage is None else {"stage": stage.name}
        row |= numbers
        best = self._evaluator.best
        if self._due(self.config.evaluation.every, before):
            if self._baselines_last:
                self._evaluate_baselines()
            row |= self._evaluate()
        due = (
            self._evaluator.best != best
            or self._due(self.config.checkpoint.every, before)
            or self._is_time_to_save()
        )
        row, due = self._group.broadcast([row, due])
        if self._curriculum.advance(self.frames, row) is not None:
            self._log_stage()
        self._callbacks.batch(self.frames, row)
        if due:
            self._save()

    def _check_time(self) -> None:
        """Let rank 0 decide whether a time budget is used up."""
        share = self._iteration.share_of_time
        if share is not None:
            self._time_is_up = self._group.broadcast(share >= 1)

    def _due(self, every: int | None, before: int) -> bool:
        """Return whether the last batch passed a multiple of `every` frames, or was the last of the run."""
        return self._finished or (every is not None and self.frames // every > before // every)

    def _is_time_to_save(self) -> bool:
        minutes = self.config.checkpoint.minutes
        return minutes is not None and time.monotonic() - self._saved_at > 60 * minutes

    @property
    def _baselines_last(self) -> bool:
        """Whether nothing is evaluated before the end; another metric than the return is looked for early."""
        evaluation = self.config.evaluation
        return evaluation.every is None and evaluation.metric == "return"

    def _evaluate_baselines(self) -> None:
        if self._group.first:
            with self._timed_evaluation():
                self._evaluator.evaluate_baselines()

    def _evaluate(self) -> dict[str, float]:
        """Evaluate in the process of rank 0, while the others wait; return the means in each."""
        found: dict[str, float] = self._group.broadcast(self._evaluate_here() if self._group.first else None)
        return found

    def _evaluate_here(self) -> dict[str, float]:
        with self._timed_evaluation():
            found = self._evaluator.evaluate(self.frames)
        if self._evaluator.last is not None:
            self._callbacks.evaluation(self.frames, self._evaluator.last)
        return found

    @contextmanager
    def _timed_evaluation(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._iteration.clock.evaluating += time.perf_counter() - began

    def _log_stage(self) -> None:
        if self._curriculum.stage is not None:
            self._callbacks.stage(self.frames, self._curriculum.stage.name)

    def _info(self) -> RunInfo:
        return RunInfo(
            path=self.folder.path,
            name=self.config.name,
            config=self.config.to_plain(),
            total_frames=self.config.training.total_frames,
            frames=self.frames,
            checkpoint=self._restored,
            seconds=lambda: {
                name: spent for name, spent in asdict(self._iteration.clock).items() if name != "cpu"
            },
            share=lambda: self._iteration.share_of_time,
        )

    def _interrupted(self, signal: str) -> Interrupted:
        return Interrupted(
            f"stopped by {signal} after {self.frames} frames, saved in {self._iteration.last_checkpoint}",
            hint=f"continue with `{command('resume', self.folder.path, run=self.folder.path)}`",
        )

    def _unwritable(self, error: OSError) -> CheckpointError:
        last = self._iteration.last_checkpoint
        saved = f"the last good checkpoint is {last}" if last else "there is no checkpoint yet"
        return CheckpointError(f"cannot write to {self.folder.path}: {error.strerror}; {saved}")

    def _save(self) -> None:
        """Save a checkpoint, delete old ones and update `best.json`."""
        self._callbacks.sync()
        config, best = self.config.checkpoint, self._evaluator.best
        path = checkpoint.save(
            self.folder.checkpoints,
            rank_state.own(self._state(), self.parts.algorithm, self._group),
            step=self.frames,
            keep_last=config.keep_last,
            keep=() if best is None else (best[0],),
            group=self._group,
        )
        self._iteration.last_checkpoint, self._saved_at = path, time.monotonic()
        if not self._group.first:
            return
        self._callbacks.checkpoint(self.frames, path)
        self._is_new_best = self._mark_best()
        self._report_best()

    def _reset_missing_best(self) -> None:
        """Reset the best evaluation if its checkpoint no longer exists."""
        best = self._evaluator.best
        if best is not None and best[0] not in map(
            checkpoint.step_of, checkpoint.saved(self.folder.checkpoints)
        ):
            log.warning("the best checkpoint so far, of %d frames, no longer exists", best[0])
            self._evaluator.best = None

    def _mark_best(self) -> bool:
        """Write the best evaluation so far to `best.json`; return whether it changed."""
        best, metric = self._evaluator.best, self.config.evaluation.metric
        folder = self.folder.checkpoints
        return best is not None and checkpoint.mark_best(folder, best[0], metric=metric, value=best[1])

    def _report_best(self) -> None:
        """Call the callbacks if there is a new best evaluation."""
        best, metric = self._evaluator.best, self.config.evaluation.metric
        if self._is_new_best and best is not None:
            self._callbacks.best(best[0], metric, best[1])
        self._is_new_best = False

    def _state(self) -> dict[str, State]:
        """Return everything that the rest of the run depends on, and the seconds spent."""
        algorithm = dict(self.parts.algorithm.state_dict())
        data = {key: algorithm.pop(key) for key in self.parts.algorithm.data_keys}
        return {
            "algorithm": algorithm,
            "data": data,
            "rollout": self.parts.rollout.state_dict(),
            "random": random_state.capture(),
            "trainer": {
                "identity": identity(self.config),
                "processes": self._group.size,
                "frames": self.frames,
                "batches": self.batches,
                "curriculum": self._curriculum.state_dict(),
                "iteration": self._iteration.state_dict(),
                "evaluator": self._evaluator.state_dict(),
                "log": self._callbacks.state_dict(),
            },
            "clock": asdict(self._iteration.clock),
        }

    def _load(self, state: Mapping[str, State]) -> None:
        own = state["trainer"]
        self._curriculum.load_state_dict(own["curriculum"], frames=int(own["frames"]))
        self.parts.algorithm.load_state_dict({**state["algorithm"], **state.get("data", {})})
        self.parts.rollout.load_state_dict(state["rollout"])
        self._curriculum.begin()
        self._iteration.load_state_dict(own["iteration"])
        self._iteration.clock = Clock(**state["clock"])
        self._check_time()
        self._evaluator.load_state_dict(own["evaluator"])
        self.frames, self.batches = int(own["frames"]), int(own["batches"])
        random_state.restore(state["random"])


def _with_logs(callbacks: Sequence[Callback], folder: Path, config: RunConfig[Any, Any, Any]) -> Callbacks:
    """Return the callbacks of a run: the logs of its folder, TensorBoard, and those given."""
    every = config.logging.every
    logs = {
        "metrics": MetricsLog(folder / "metrics.csv", every=every),
        "timing": TimingLog(folder / "timing.csv", every=every),
        "events": EventLog(folder / "events.jsonl"),
    }
    board = [TensorBoardLog(folder / "tensorboard", every=every)] if config.logging.tensorboard else []
    return Callbacks(logs, [*board, *callbacks])


def _described(error: BaseException) -> str:
    """Return the type and message of an error in one line."""
    message = error.message if isinstance(error, EdgewiseError) else str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
