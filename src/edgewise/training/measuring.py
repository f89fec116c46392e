"""Measures the policy on the fixed instances now and then, keeps what was found, and knows which was best."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.config.errors import ConfigError
from edgewise.config.run import RunConfig
from edgewise.config.wording import did_you_mean
from edgewise.evaluation.result import Evaluation
from edgewise.training import durable
from edgewise.training.checkpoint import random_state
from edgewise.training.parts import Parts
from edgewise.training.run_folder import RunFolder


class Measuring:
    """Evaluations of one run.

    Args:
        config: of the run.
        parts: has what plays the instances.
        folder: where results go.

    Attributes:
        best: frames and value of the best evaluation so far, None before the first.
    """

    def __init__(self, config: RunConfig[Any, Any, Any], parts: Parts, folder: RunFolder) -> None:
        self._config, self._parts, self._folder = config, parts, folder
        self.best: tuple[int, float] | None = None

    def baselines(self) -> None:
        """Measure the hand-written policies, once.

        Raises:
            ConfigError: the metric that is to tell the best is not measured.
        """
        for name, policy in self._parts.baselines.items():
            with random_state.untouched():
                found = self._parts.evaluate(policy)
            found = replace(found, policy=name, baseline=True)
            self._check_metric(found)
            found.save(self._folder.evaluations / f"baseline-{name}.json")

    def measure(self, frames: int) -> dict[str, float]:
        """Play the policy of the run, keep the result, and return the mean of each measure.

        Nothing random is touched outside, so that a run that measures goes on like one that does not.

        Raises:
            ConfigError: before the first batch, if the metric that is to tell the best is not measured.
        """
        record = self._config.logging.replays if self._parts.replay is not None else 0
        with random_state.untouched():
            found = self._parts.evaluate(self._parts.algorithm.policy, record=record)
        found = replace(found, frames=frames)
        if frames == 0:
            self._check_metric(found)
        found.save(self._folder.evaluations / f"{frames:012d}.json")
        self._keep_replays(found, frames)
        means = {name: float(np.nanmean(values)) for name, values in found.measures().items() if _any(values)}
        self._compare(means, frames)
        return {f"evaluation/{name}": value for name, value in means.items()}

    def state_dict(self) -> dict[str, Any]:
        """The best so far."""
        return {"best": self.best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on comparing with the best so far."""
        self.best = state["best"]

    def _check_metric(self, found: Evaluation) -> None:
        """Refuses a metric that nothing measures: the best would never be told."""
        metric, known = self._config.evaluation.metric, list(found.measures())
        if metric not in known:
            raise ConfigError(
                f"evaluation.metric: {metric} is not measured", hint=did_you_mean(metric, known)
            )

    def _compare(self, means: Mapping[str, float], frames: int) -> None:
        value = means.get(self._config.evaluation.metric, math.nan)
        sign = 1.0 if self._config.evaluation.maximise else -1.0
        if math.isfinite(value) and (self.best is None or sign * value > sign * self.best[1]):
            self.best = (frames, value)

    def _keep_replays(self, found: Evaluation, frames: int) -> None:
        if self._parts.replay is None:
            return
        for index, states in enumerate(found.recordings):
            text = json.dumps(self._parts.replay(states), separators=(",", ":"), allow_nan=False)
            durable.replace_whole(self._folder.replays / f"{frames:012d}-{index}.json", text.encode())


def _any(values: Any) -> bool:
    """Whether any value is defined."""
    return bool((~np.isnan(values)).any())
