"""Move a run through the stages of its curriculum; each world changes at its next reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgewise.config.run import Stage, Until
from edgewise.training.parts import Worlds


class Curriculum:
    """The current stage of a run.

    Args:
        stages: in order; empty if there is no curriculum.
        env: the training worlds.
    """

    def __init__(self, stages: Sequence[Stage], env: Worlds) -> None:
        self._stages, self._env = stages, env
        self._index, self._since = 0, 0
        self._newest: dict[str, float] = {}

    @property
    def stage(self) -> Stage | None:
        """The current stage, which worlds follow from their next reset on; None without a curriculum."""
        return self._stages[self._index] if self._stages else None

    def begin(self) -> None:
        """Apply the settings of the current stage to the worlds."""
        if self.stage is not None:
            self._env.apply_stage(**self.stage.env)

    def advance(self, frames: int, metrics: Mapping[str, float | int | str]) -> Stage | None:
        """Move to the next stage if the condition of this one is met, and return it.

        The condition uses the newest value of its metric since the stage began: a metric that is not logged
        with every batch, such as that of an evaluation, keeps its value until it is logged again.

        Args:
            frames: frames of the run so far.
            metrics: metrics of this batch, by the names of `metrics.csv`.
        """
        stage = self.stage
        if stage is None or stage.until is None or self._index + 1 == len(self._stages):
            return None
        value = metrics.get(stage.until.metric or "")
        if stage.until.metric is not None and isinstance(value, int | float):
            self._newest = {stage.until.metric: float(value)}
        if not is_over(stage.until, frames - self._since, self._newest):
            return None
        self._index, self._since, self._newest = self._index + 1, frames, {}
        self.begin()
        return self.stage

    def state_dict(self) -> dict[str, Any]:
        """Return the current stage and its start."""
        return {
            "stage": self.stage.name if self.stage else None,
            "since": self._since,
            "newest": self._newest,
        }

    def load_state_dict(self, state: Mapping[str, Any], *, frames: int = 0) -> None:
        """Restore the stage of that name; begin the first one if a new curriculum does not have it.

        Args:
            state: from `state_dict`.
            frames: frames of the run so far.

        Raises:
            ValueError: the run stopped in a stage, and there is no curriculum.
        """
        indices: dict[str | None, int] = {stage.name: index for index, stage in enumerate(self._stages)}
        indices = indices or {None: 0}
        if state["stage"] in indices:
            self._index = indices[state["stage"]]
            self._since, self._newest = int(state["since"]), dict(state["newest"])
        elif self._stages:
            self._index, self._since, self._newest = 0, frames, {}
        else:
            raise ValueError(f"there is no stage {state['stage']}, where the run stopped")
        self.begin()


def is_over(until: Until, frames: int, metrics: Mapping[str, float]) -> bool:
    """Return whether a stage ends.

    Args:
        until: its condition.
        frames: frames since it began.
        metrics: the newest value of each metric since it began.
    """
    if until.frames is not None and frames >= until.frames:
        return True
    value = metrics.get(until.metric) if until.metric is not None else None
    if value is None:
        return False
    if until.at_least is not None:
        return value >= until.at_least
    return until.at_most is not None and value <= until.at_most
