"""One batch of a run: apply schedules, collect, learn, and check that every number is finite."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from tensordict import TensorDictBase

from edgewise.algorithms.algorithm import Algorithm
from edgewise.config.errors import ConfigError, NoLegalActionError, NumericalStop
from edgewise.config.run import TrainingConfig
from edgewise.config.schedules import Schedule
from edgewise.data.instance_batch import steps_of
from edgewise.scale.processes.group import ALONE, Group
from edgewise.training import health
from edgewise.training.episodes import EpisodeMeter
from edgewise.training.parts import HasMetrics, Parts

T = TypeVar("T")


@dataclass
class Clock:
    """Seconds spent over all processes of a run; no result depends on them."""

    collecting: float = 0.0
    learning: float = 0.0
    evaluating: float = 0.0
    cpu: float = 0.0
    """Seconds of CPU time of this process, collecting and learning."""


class Iteration:
    """Collects batches and learns from them.

    Args:
        config: training settings of the run.
        parts: of the run.
        folder: of the run; a batch with numbers that are not finite is saved there.
        group: the processes that train together; metrics are over all of them.

    Attributes:
        clock: seconds spent so far.
        last_checkpoint: the newest checkpoint, named by error messages; None before the first.
    """

    def __init__(self, config: TrainingConfig, parts: Parts, folder: Path, *, group: Group = ALONE) -> None:
        self._config, self._parts, self._folder, self._group = config, parts, folder, group
        self._episodes = EpisodeMeter(group)
        self.clock = Clock()
        self.last_checkpoint: Path | None = None

    @property
    def share_of_time(self) -> float | None:
        """Share of the time budget that is used; None if the budget is a number of frames."""
        config, clock = self._config, self.clock
        if config.cpu_minutes is not None:
            return clock.cpu / (60 * config.cpu_minutes)
        if config.minutes is not None:
            return (clock.collecting + clock.learning) / (60 * config.minutes)
        return None

    def planned_frames(self, frames: int) -> int:
        """Return the frames of the whole run: as configured, or as the time used so far suggests."""
        share = self._group.broadcast(self.share_of_time) if self.share_of_time is not None else None
        if not share or not frames:
            return self._config.total_frames
        return max(frames + 1, round(frames / share))

    def next(self, frames: int) -> tuple[int, dict[str, float]]:
        """Collect one batch and learn from it.

        Args:
            frames: frames of the run before this batch.

        Returns:
            Frames in the batches of all processes, and metrics by the names of `metrics.csv`, all finite.

        Raises:
            NumericalStop: a reward, an observation, a loss, a gradient or a weight is not finite.
        """
        algorithm, total = self._parts.algorithm, self.planned_frames(frames)
        scheduled = apply_schedules(algorithm, self._config.schedules, frames=frames, total_frames=total)
        began, cpu = time.perf_counter(), time.process_time()
        with self._stop_on_bad_inputs(frames):
            batch = self._parts.rollout.collect()
        collected = time.perf_counter()
        is_finite = health.finite(batch)
        with self._stop_on_bad_inputs(frames, batch):
            policy, learnt = algorithm.policy, algorithm.learn(batch)
            checked = prefixed("learn", learnt) | prefixed("health", health.diagnostics(policy, batch))
        steps = steps_of(batch)
        episodes = prefixed("episode", self._episodes.update(steps))
        numbers = health.to_host({**episodes, **checked, **prefixed("finite", is_finite)})
        health.check_edge_slots(numbers, frames=frames)
        self.clock.collecting += collected - began
        self.clock.learning += time.perf_counter() - collected
        self.clock.cpu += time.process_time() - cpu
        causes = [name for name in is_finite if not numbers.pop(f"finite/{name}")]
        causes += [name for name in checked if not math.isfinite(numbers[name])]
        stop = self._first_stop(self._numerical_stop(batch, causes, frames) if causes else None)
        numbers |= self._mean_numbers({name: numbers[name] for name in checked})
        size = int(self._group.sum(torch.tensor(steps.numel())))
        if stop is not None:
            raise stop
        defined = {name: number for name, number in numbers.items() if not math.isnan(number)}
        rollout = self._parts.rollout.metrics() if isinstance(self._parts.rollout, HasMetrics) else {}
        others = {**prefixed("rollout", rollout), **prefixed("schedule", scheduled)}
        return size, {**defined, **{name: _plain(value) for name, value in others.items()}}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of unfinished episodes."""
        return {"episodes": self._episodes.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of unfinished episodes."""
        self._episodes.load_state_dict(state["episodes"])

    @contextmanager
    def _stop_on_bad_inputs(self, frames: int, batch: TensorDictBase | None = None) -> Iterator[None]:
        """Raise NumericalStop in place of any error inside if the inputs or outputs were not finite.

        The batch is saved if there is one, otherwise the observation on which the policy failed.
        """
        try:
            yield
        except NoLegalActionError as error:
            if batch is not None:
                raise
            raise self._no_legal_action(error, frames) from error
        except Exception as error:
            root = health.observation_of(error) if batch is None else batch
            causes = [] if root is None else health.causes(root)
            if not causes and isinstance(error, NumericalStop):
                causes = ["outputs of the policy"]
            if causes and root is not None:
                raise self._numerical_stop(root, causes, frames) from error
            raise

    def _no_legal_action(self, error: NoLegalActionError, frames: int) -> ConfigError:
        """Return the error with the environment, and the step of the world's episode."""
        root = health.observation_of(error)
        step = None if root is None else root.get(("state", "step"), None)
        when = ""
        if step is not None and step.dim() == 1 and error.world < len(step):
            when = f" in step {int(step[error.world])} of its episode"
        name = getattr(self._parts.env, "name", "the environment")
        return ConfigError(f"{name}, after {frames:,} frames: {error.message}{when}", hint=error.hint)

    def _first_stop(self, stop: NumericalStop | None) -> NumericalStop | None:
        """Return the stop of the first process that has one."""
        stops = self._group.gather(None if stop is None else [stop.message, stop.hint])
        found = next((one for one in stops if one is not None), None)
        return stop if found is None or stop is not None else NumericalStop(found[0], hint=found[1])

    def _mean_numbers(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return the mean of each number over all processes."""
        means = self._group.mean(torch.tensor(list(numbers.values()), dtype=torch.float64))
        return dict(zip(numbers, means.tolist(), strict=True))

    def _numerical_stop(self, batch: TensorDictBase, causes: list[str], frames: int) -> NumericalStop:
        return health.numerical_stop(
            self._folder,
            batch,
            causes=causes,
            frames=frames,
            last_checkpoint=self.last_checkpoint,
            rank=self._group.rank,
        )


def _plain(value: Any) -> float:
    """Return a number of any library as one of Python's."""
    return value if type(value) in (int, float) else float(value)


def prefixed(group: str, values: Mapping[str, T]) -> dict[str, T]:
    """Return the same values under the names `group/name`."""
    return {f"{group}/{name}": value for name, value in values.items()}


def apply_schedules(
    algorithm: Algorithm, schedules: Mapping[str, Schedule], *, frames: int, total_frames: int
) -> dict[str, float]:
    """Set each scheduled number to its value at `frames`, and return the values by name.

    Args:
        algorithm: of the run.
        schedules: by the name of the number.
        frames: frames so far.
        total_frames: frames of the whole run.
    """
    values = {name: schedule.at(frames, total_frames) for name, schedule in schedules.items()}
    for name, value in values.items():
        try:
            algorithm.set_scalar(name, value)
        except ValueError as error:
            raise ConfigError(f"training.schedules.{name}: {error}") from error
    return values
