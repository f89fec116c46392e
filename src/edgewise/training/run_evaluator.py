"""Evaluate the policy of a run on the fixed instances, save the results, and keep track of the best."""

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
from edgewise.runs import durable
from edgewise.runs.checkpoint import random_state
from edgewise.runs.folder import RunFolder
from edgewise.training.parts import Parts


class RunEvaluator:
    """Evaluates the policy and the baselines of one run.

    Args:
        config: of the run.
        parts: of the run.
        folder: where results are saved.

    Attributes:
        best: frames and value of the best evaluation so far, None before the first.
        last: the last evaluation of the policy in this process.
    """

    def __init__(self, config: RunConfig[Any, Any, Any], parts: Parts, folder: RunFolder) -> None:
        self._config, self._parts, self._folder = config, parts, folder
        self.best: tuple[int, float] | None = None
        self.last: Evaluation | None = None

    def evaluate_baselines(self) -> None:
        """Evaluate the baselines once, and save the results.

        Raises:
            ConfigError: `evaluation.metric` is not among the measures.
        """
        for name, policy in self._parts.baselines.items():
            with random_state.untouched():
                found = self._parts.evaluate(policy)
            found = replace(found, policy=name, baseline=True)
            self._check_metric(found)
            found.save(self._folder.evaluations / f"baseline-{name}.json")

    def evaluate(self, frames: int) -> dict[str, float]:
        """Evaluate the policy of the run, save the result, and return the mean of each measure.

        Global random states are left unchanged, so that evaluating does not change how a run continues.

        Raises:
            ConfigError: `evaluation.metric` is not among the measures; checked before the first batch.
        """
        record = self._config.logging.replays if self._parts.replay is not None else 0
        with random_state.untouched():
            found = self._parts.evaluate(self._parts.algorithm.policy, record=record)
        self.last = found = replace(found, frames=frames)
        if frames == 0:
            self._check_metric(found)
        found.save(self._folder.evaluations / f"{frames:012d}.json")
        self._save_replays(found, frames)
        means = mean_measures(found)
        self._update_best(means, frames)
        return means

    def state_dict(self) -> dict[str, Any]:
        """Return the best evaluation so far."""
        return {"best": self.best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the best evaluation so far."""
        self.best = state["best"]

    def _check_metric(self, found: Evaluation) -> None:
        """Raise ConfigError if the metric that decides the best checkpoint is not measured."""
        metric, known = self._config.evaluation.metric, list(found.measures())
        if metric not in known:
            raise ConfigError(
                f"evaluation.metric: {metric} is not measured", hint=did_you_mean(metric, known)
            )

    def _update_best(self, means: Mapping[str, float], frames: int) -> None:
        value = means.get(f"evaluation/{self._config.evaluation.metric}", math.nan)
        sign = 1.0 if self._config.evaluation.maximise else -1.0
        if math.isfinite(value) and (self.best is None or sign * value > sign * self.best[1]):
            self.best = (frames, value)

    def _save_replays(self, found: Evaluation, frames: int) -> None:
        if self._parts.replay is None:
            return
        episodes = zip(found.recordings, found.recorded_steps, strict=True)
        for index, (states, steps) in enumerate(episodes):
            text = json.dumps(self._parts.replay(states, steps), separators=(",", ":"), allow_nan=False)
            durable.replace_whole(self._folder.replays / f"{frames:012d}-{index}.json", text.encode())


def mean_measures(evaluation: Evaluation) -> dict[str, float]:
    """Return the mean of each measure over the episodes that define it, by its name in metrics.csv."""
    return {
        f"evaluation/{name}": float(np.nanmean(values))
        for name, values in evaluation.measures().items()
        if not np.isnan(values).all()
    }
