"""Split an evaluation that played several stages as one batch into the results of each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewise.evaluation.bounds import Values
from edgewise.evaluation.result import Evaluation

SUCCESS = "success"
OF_SUCCESSES = ("time", "energy")
"""Measures that are also reported over successful episodes alone, as `time.successful`."""


@dataclass(frozen=True)
class StageEpisodes:
    """The episodes of one evaluation stage, which are consecutive in the batch.

    Args:
        name: name of the stage in tables and metrics.
        episodes: how many.
        settings: environment settings of this stage.
    """

    name: str
    episodes: int
    settings: Mapping[str, Any]


def with_stage_metrics(evaluation: Evaluation, stages: Sequence[StageEpisodes]) -> Evaluation:
    """Return the evaluation with a metric `success.NAME` for each stage, NaN on the episodes of others."""
    return replace(
        evaluation, metrics={**_with_successes(evaluation), **_success_by_stage(evaluation, stages)}
    )


def split_by_stage(evaluation: Evaluation, stages: Sequence[StageEpisodes]) -> list[Evaluation]:
    """Return one evaluation for each stage, with its settings."""
    found, begin = [], 0
    for stage in stages:
        chosen = slice(begin, begin + stage.episodes)
        agents = evaluation.agent_returns
        found.append(
            replace(
                evaluation,
                returns=evaluation.returns[chosen],
                lengths=evaluation.lengths[chosen],
                finished=evaluation.finished[chosen],
                metrics=_slice_metrics(evaluation, chosen),
                agent_returns=None if agents is None else agents[chosen],
                settings={**evaluation.settings, **stage.settings},
                recordings=(),
                recorded_steps=(),
            )
        )
        begin += stage.episodes
    return found


def _with_successes(evaluation: Evaluation) -> dict[str, Values]:
    """Return the metrics, with some of them restricted to successful episodes added."""
    metrics = dict(evaluation.metrics)
    if evaluation.success is not None:
        for name in OF_SUCCESSES:
            if name in metrics:
                metrics[f"{name}.successful"] = np.where(evaluation.success > 0, metrics[name], np.nan)
    return metrics


def _success_by_stage(evaluation: Evaluation, stages: Sequence[StageEpisodes]) -> dict[str, Values]:
    if evaluation.success is None:
        return {}
    ends = np.cumsum([stage.episodes for stage in stages])
    index = np.arange(evaluation.episodes)
    found = {}
    for stage, end in zip(stages, ends, strict=True):
        belongs = (index >= end - stage.episodes) & (index < end)
        found[f"{SUCCESS}.{stage.name}"] = np.where(belongs, evaluation.success, np.nan)
    return found


def _slice_metrics(evaluation: Evaluation, chosen: slice) -> dict[str, Values]:
    """Return the metrics of some episodes, without those of single stages."""
    prefix = f"{SUCCESS}."
    metrics = _with_successes(evaluation)
    return {name: values[chosen] for name, values in metrics.items() if not name.startswith(prefix)}
