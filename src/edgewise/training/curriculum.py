"""Leads the worlds through the stages of a curriculum; each world follows at its next reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgewise.config.run import Stage
from edgewise.training.parts import Worlds


class Curriculum:
    """Which stage a run is in.

    Args:
        stages: in order; none for an environment that stays as configured.
        env: the worlds to lead.
    """

    def __init__(self, stages: Sequence[Stage], env: Worlds) -> None:
        self._stages, self._env = stages, env
        self._index, self._since = 0, 0
        self._newest: dict[str, float] = {}

    @property
    def stage(self) -> Stage | None:
        """The stage that worlds born now follow."""
        return self._stages[self._index] if self._stages else None

    def begin(self) -> None:
        """Apply the current stage."""
        if self.stage is not None:
            self._env.apply_stage(**self.stage.env)

    def advance(self, frames: int, metrics: Mapping[str, float | int | str]) -> Stage | None:
        """Go on to the next stage if this one is over, and return it.

        A metric counts by its newest value since the stage began: one that is not measured in every batch,
        such as an evaluation's, keeps its value until it is measured again.

        Args:
            frames: of the run so far.
            metrics: of this batch, by the names of `metrics.csv`.
        """
        stage = self.stage
        if stage is None or stage.until is None or self._index + 1 == len(self._stages):
            return None
        value = metrics.get(stage.until.metric or "")
        if stage.until.metric is not None and isinstance(value, int | float):
            self._newest = {stage.until.metric: float(value)}
        if not stage.until.reached(frames - self._since, self._newest):
            return None
        self._index, self._since, self._newest = self._index + 1, frames, {}
        self.begin()
        return self.stage

    def state_dict(self) -> dict[str, Any]:
        """Where in the curriculum the run is."""
        return {
            "stage": self.stage.name if self.stage else None,
            "since": self._since,
            "newest": self._newest,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue in the stage of that name."""
        places: dict[str | None, int] = {stage.name: index for index, stage in enumerate(self._stages)}
        places = places or {None: 0}
        if state["stage"] not in places:
            raise ValueError(f"the curriculum has no stage {state['stage']}, where the run stopped")
        self._index = places[state["stage"]]
        self._since, self._newest = int(state["since"]), dict(state["newest"])
        self.begin()
