"""One batch of a run: schedules move, worlds are stepped, the algorithm learns, every number is watched."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from edgewise.config.run import TrainingConfig
from edgewise.training import health
from edgewise.training.episodes import EpisodeMeter
from edgewise.training.parts import Parts, Telling
from edgewise.training.schedules import apply_schedules

T = TypeVar("T")


@dataclass
class Clock:
    """Seconds spent over all processes of a run; no result depends on them."""

    collecting: float = 0.0
    learning: float = 0.0
    evaluating: float = 0.0


class Iteration:
    """Collects and learns, batch after batch.

    Args:
        config: how much is collected, and what changes on the way.
        parts: of the run.
        folder: of the run, where a batch with broken numbers goes.

    Attributes:
        clock: where the time goes.
        good: the last good checkpoint, which an error names.
    """

    def __init__(self, config: TrainingConfig, parts: Parts, folder: Path) -> None:
        self._config, self._parts, self._folder = config, parts, folder
        self._episodes = EpisodeMeter()
        self._witness = health.Witness(parts.algorithm.policy)
        self.clock = Clock()
        self.good: Path | None = None

    def next(self, frames: int) -> tuple[int, dict[str, float]]:
        """Collect one batch and learn from it.

        Args:
            frames: of the run before this batch.

        Returns:
            Frames in the batch, and its numbers by the names of `metrics.csv`, all finite.

        Raises:
            NumericalStop: a reward, an observation, a loss, a gradient or a weight is not finite.
        """
        algorithm, total = self._parts.algorithm, self._config.total_frames
        scheduled = apply_schedules(algorithm, self._config.schedules, frames=frames, total_frames=total)
        began = time.perf_counter()
        with self._blaming(self._witness, frames):
            batch = self._parts.rollout.collect()
        collected = time.perf_counter()
        self._witness.root = batch
        fine = health.finite(batch)
        with self._blaming(self._witness, frames):
            watched = prefixed("learn", algorithm.learn(batch))
            watched |= prefixed("health", health.diagnostics(algorithm.policy, batch))
        episodes = prefixed("episode", self._episodes.update(batch))
        numbers = health.to_host({**episodes, **watched, **prefixed("fine", fine)})
        self.clock.collecting += collected - began
        self.clock.learning += time.perf_counter() - collected
        causes = [name for name in fine if not numbers.pop(f"fine/{name}")]
        causes += [name for name in watched if not math.isfinite(numbers[name])]
        if causes:
            raise health.stop(self._folder, batch, causes=causes, frames=frames, good=self.good)
        defined = {name: number for name, number in numbers.items() if not math.isnan(number)}
        told = self._parts.rollout.metrics() if isinstance(self._parts.rollout, Telling) else {}
        return batch.numel(), {**defined, **prefixed("rollout", told), **prefixed("schedule", scheduled)}

    def state_dict(self) -> dict[str, Any]:
        """What unfinished episodes have gathered."""
        return {"episodes": self._episodes.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with those episodes."""
        self._episodes.load_state_dict(state["episodes"])

    @contextmanager
    def _blaming(self, witness: health.Witness, frames: int) -> Iterator[None]:
        """Whatever goes wrong inside on numbers that are not finite, it is they that are to blame."""
        try:
            yield
        except Exception as error:
            causes = witness.causes()
            if causes and witness.root is not None:
                folder, good = self._folder, self.good
                raise health.stop(folder, witness.root, causes=causes, frames=frames, good=good) from error
            raise


def prefixed(group: str, values: Mapping[str, T]) -> dict[str, T]:
    """The same values under `group/name`."""
    return {f"{group}/{name}": value for name, value in values.items()}
