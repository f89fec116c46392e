"""The run: collect, learn, evaluate, log, save, until the frames are used up or someone stops it.

The order within an iteration is what makes a run resumable bit for bit: everything that the next iteration
depends on is settled before the checkpoint is written, and whatever a killed run wrote after its last
checkpoint is cut off when it resumes.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from edgewise.config.errors import CheckpointError, Interrupted, NumericalStop
from edgewise.config.run import RunConfig
from edgewise.training.checkpoint import random_state
from edgewise.training.checkpoint import store as checkpoint
from edgewise.training.checkpoint.fitting import check_fit, identity
from edgewise.training.checkpoint.serialise import State
from edgewise.training.curriculum import Curriculum
from edgewise.training.interrupt import StopRequest
from edgewise.training.iteration import Clock, Iteration
from edgewise.training.logging.metrics_log import Row
from edgewise.training.logging.progress import Silence, Watcher
from edgewise.training.logging.run_log import RunLog
from edgewise.training.measuring import Measuring
from edgewise.training.parts import Parts
from edgewise.training.run_folder import RunFolder

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
"""What a disk says that is full, closed or broken."""

log = logging.getLogger(__name__)


class Trainer:
    """Drives the parts of a run; knows nothing of what kind of algorithm it is.

    Args:
        config: of the run.
        parts: what the recipe built from it.
        folder: of the run, locked by the caller.
        watcher: is told how the run does.

    Attributes:
        frames: steps of single worlds so far.
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
        watcher: Watcher | None = None,
    ) -> None:
        self.config, self.parts, self.folder = config, parts, folder
        self.frames, self.batches = 0, 0
        self._watcher = watcher or Silence()
        self._log = RunLog(folder.path, config.logging)
        self._curriculum = Curriculum(config.training.curriculum, parts.env)
        self._iteration = Iteration(config.training, parts, folder.path)
        self._measuring = Measuring(config, parts, folder)
        self._restored = False
        self._saved_at = time.monotonic()

    def run(self) -> None:
        """Train until the frames of the config are used up.

        Raises:
            Interrupted: SIGINT or SIGTERM came; the run was saved after the batch under way.
            NumericalStop: a number was not finite; the batch is kept in the run folder.
            CheckpointError: the run could not be saved.
        """
        torch.set_num_threads(self.config.threads)
        with StopRequest() as stop:
            self._watcher.start(self.frames, self.config.training.total_frames, self.config.name)
            try:
                if not self._restored:
                    self._begin()
                while not self._finished:
                    self._iterate()
                    if stop.received is not None and not self._finished:
                        raise self._interrupted(stop.received)
                self._log.event("stop", {"frames": self.frames, "reason": "done"})
            except NumericalStop as error:
                self._log.event("stop", {"frames": self.frames, "reason": error.message})
                raise
            except OSError as error:
                if error.errno not in UNWRITABLE:
                    raise
                raise self._unwritable(error) from error
            finally:
                self._watcher.close()
                self._log.close()

    def restore(self, path: Path | None = None) -> Path | None:
        """Go back to a checkpoint, so that `run` goes on from there.

        Args:
            path: the checkpoint; the newest whole one if not given.

        Returns:
            The checkpoint, or None where the run was stopped before its first: then it begins anew.

        Raises:
            CheckpointError: it is damaged, or does not fit the parts of this run.
        """
        folder = self.folder.checkpoints
        if path is None and not checkpoint.saved(folder):
            return None
        path = checkpoint.latest(folder) if path is None else path
        state = checkpoint.load(path)
        check_fit(path, state, config=self.config, parts=self.parts)
        try:
            self._load(state)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise CheckpointError(f"checkpoint {path} does not fit this run: {error!r}") from error
        for other in checkpoint.set_aside(folder, newer_than=self.frames):
            log.warning("a checkpoint ahead of %s is kept as %s", path.name, other)
        self._log.load_state_dict(state["trainer"]["log"])
        for name, (then, now) in self.folder.changed_versions().items():
            log.warning("this run began with %s %s and goes on with %s: numbers may differ", name, then, now)
        self._restored, self._iteration.good = True, path
        self._forget_lost_best()
        self._mark_best()
        self._log.event("resume", {"frames": self.frames, "checkpoint": path.name})
        return path

    @property
    def _finished(self) -> bool:
        return self.frames >= self.config.training.total_frames

    def _begin(self) -> None:
        """What happens once, before the first batch."""
        random_state.seed(self.config.seed)
        self._log.clear()
        self._log.event("start", {"frames": 0, "total_frames": self.config.training.total_frames})
        self._curriculum.begin()
        self._tell_stage()
        self._measuring.baselines()
        if self.config.evaluation.every is not None:
            self._write({"frames": 0, "iteration": 0, **self._measured()})
        self._save()

    def _iterate(self) -> None:
        """One batch, from its first step to the checkpoint."""
        began, before = time.perf_counter(), self.frames
        stage = self._curriculum.stage
        size, numbers = self._iteration.next(before)
        self.frames, self.batches = before + size, self.batches + 1
        row: dict[str, float | int | str] = {"frames": self.frames, "iteration": self.batches}
        row |= {} if stage is None else {"stage": stage.name}
        row |= numbers
        best, measured = self._measuring.best, self._due(self.config.evaluation.every, before)
        if measured:
            row |= self._measured()
        if self._curriculum.advance(self.frames, row) is not None:
            self._tell_stage()
        if measured or self.batches % self.config.logging.every == 0:
            self._write(row)
        self._watcher.update(self.frames, _shown(row, size / (time.perf_counter() - began)))
        is_best = self._measuring.best != best
        if is_best or self._due(self.config.checkpoint.every, before) or self._is_time_to_save():
            self._save()

    def _due(self, every: int | None, before: int) -> bool:
        """Whether the last batch passed a multiple of `every` frames, or was the last of all."""
        return self._finished or (every is not None and self.frames // every > before // every)

    def _is_time_to_save(self) -> bool:
        minutes = self.config.checkpoint.minutes
        return minutes is not None and time.monotonic() - self._saved_at > 60 * minutes

    def _measured(self) -> dict[str, float]:
        began = time.perf_counter()
        found = self._measuring.measure(self.frames)
        self._iteration.clock.evaluating += time.perf_counter() - began
        self._log.event("evaluation", {"frames": self.frames, **found})
        return found

    def _write(self, row: Row) -> None:
        self._log.row(row, {"frames": self.frames, **asdict(self._iteration.clock)}, frames=self.frames)

    def _tell_stage(self) -> None:
        if self._curriculum.stage is not None:
            self._log.event("stage", {"frames": self.frames, "name": self._curriculum.stage.name})

    def _interrupted(self, signal: str) -> Interrupted:
        self._save()
        self._log.event("stop", {"frames": self.frames, "reason": signal})
        return Interrupted(
            f"stopped by {signal} after {self.frames} frames, saved in {self._iteration.good}",
            hint=f"go on with `edgewise resume {self.folder.path}`",
        )

    def _unwritable(self, error: OSError) -> CheckpointError:
        good = self._iteration.good
        fate = f"the last good checkpoint is {good}" if good else "there is no checkpoint yet"
        return CheckpointError(f"cannot write to {self.folder.path}: {error.strerror}; {fate}")

    def _save(self) -> None:
        """Save the run as it stands between two batches."""
        self._log.sync()
        config, best = self.config.checkpoint, self._measuring.best
        keep = () if best is None else (best[0],)
        path = checkpoint.save(
            self.folder.checkpoints, self._state(), step=self.frames, keep_last=config.keep_last, keep=keep
        )
        self._iteration.good, self._saved_at = path, time.monotonic()
        self._log.event("checkpoint", {"frames": self.frames, "checkpoint": path.name})
        self._mark_best()

    def _forget_lost_best(self) -> None:
        """Where the best so far was deleted by what came after it and is set aside now, look for another."""
        best = self._measuring.best
        if best is not None and best[0] not in map(
            checkpoint.step_of, checkpoint.saved(self.folder.checkpoints)
        ):
            log.warning("the best checkpoint so far, of %d frames, is gone: the next one counts", best[0])
            self._measuring.best = None

    def _mark_best(self) -> None:
        """Let `best.json` say what this run holds for its best, wherever it is now."""
        best, metric = self._measuring.best, self.config.evaluation.metric
        if best is not None and checkpoint.mark_best(
            self.folder.checkpoints, best[0], metric=metric, value=best[1]
        ):
            self._log.event("best", {"frames": best[0], "metric": metric, "value": best[1]})

    def _state(self) -> dict[str, State]:
        """Everything that the rest of the run depends on, and where the time went."""
        return {
            "algorithm": self.parts.algorithm.state_dict(),
            "rollout": self.parts.rollout.state_dict(),
            "random": random_state.capture(),
            "trainer": {
                "identity": identity(self.config),
                "frames": self.frames,
                "batches": self.batches,
                "curriculum": self._curriculum.state_dict(),
                "iteration": self._iteration.state_dict(),
                "measuring": self._measuring.state_dict(),
                "log": self._log.state_dict(),
            },
            "clock": asdict(self._iteration.clock),
        }

    def _load(self, state: Mapping[str, State]) -> None:
        own = state["trainer"]
        self._curriculum.load_state_dict(own["curriculum"])
        self.parts.algorithm.load_state_dict(state["algorithm"])
        self.parts.rollout.load_state_dict(state["rollout"])
        self._iteration.load_state_dict(own["iteration"])
        self._iteration.clock = Clock(**state["clock"])
        self._measuring.load_state_dict(own["measuring"])
        self.frames, self.batches = int(own["frames"]), int(own["batches"])
        random_state.restore(state["random"])


def _shown(row: Row, rate: float) -> dict[str, str]:
    """What a watcher sees of a row."""
    shown = {"frames/s": f"{rate:,.0f}"}
    for name, label in (("episode/return", "return"), ("evaluation/return", "evaluated"), ("stage", "stage")):
        if name in row:
            value = row[name]
            shown[label] = value if isinstance(value, str) else f"{value:.4g}"
    return shown
