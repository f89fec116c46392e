"""Instances of several kinds that were played as one batch: each kind by itself, and beside the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.statistics import Values

SUCCESS = "success"
OF_SUCCESSES = ("time", "energy")
"""Measures that are also told over successful episodes alone, as `time.successful`."""


@dataclass(frozen=True)
class Kind:
    """Episodes of one kind: they come one after another.

    Args:
        name: what tables call them.
        episodes: how many.
        settings: how their environment differs.
    """

    name: str
    episodes: int
    settings: Mapping[str, Any]


def with_kinds(evaluation: Evaluation, kinds: Sequence[Kind]) -> Evaluation:
    """The evaluation with `success.NAME` for each kind, undefined on the episodes of others."""
    return replace(evaluation, metrics={**_of_successes(evaluation), **_success_by_kind(evaluation, kinds)})


def by_kind(evaluation: Evaluation, kinds: Sequence[Kind]) -> list[Evaluation]:
    """One evaluation for each kind, with its settings."""
    found, begin = [], 0
    for kind in kinds:
        chosen = slice(begin, begin + kind.episodes)
        agents = evaluation.agent_returns
        found.append(
            replace(
                evaluation,
                returns=evaluation.returns[chosen],
                lengths=evaluation.lengths[chosen],
                finished=evaluation.finished[chosen],
                metrics=_cut(evaluation, chosen),
                agent_returns=None if agents is None else agents[chosen],
                settings={**evaluation.settings, **kind.settings},
                recordings=(),
            )
        )
        begin += kind.episodes
    return found


def _of_successes(evaluation: Evaluation) -> dict[str, Values]:
    """The metrics, some of them over successful episodes besides."""
    metrics = dict(evaluation.metrics)
    if evaluation.success is not None:
        for name in OF_SUCCESSES:
            if name in metrics:
                metrics[f"{name}.successful"] = np.where(evaluation.success > 0, metrics[name], np.nan)
    return metrics


def _success_by_kind(evaluation: Evaluation, kinds: Sequence[Kind]) -> dict[str, Values]:
    if evaluation.success is None:
        return {}
    ends = np.cumsum([kind.episodes for kind in kinds])
    place = np.arange(evaluation.episodes)
    found = {}
    for kind, end in zip(kinds, ends, strict=True):
        belongs = (place >= end - kind.episodes) & (place < end)
        found[f"{SUCCESS}.{kind.name}"] = np.where(belongs, evaluation.success, np.nan)
    return found


def _cut(evaluation: Evaluation, chosen: slice) -> dict[str, Values]:
    """The metrics of some episodes, without those of single kinds."""
    prefix = f"{SUCCESS}."
    whole = _of_successes(evaluation)
    return {name: values[chosen] for name, values in whole.items() if not name.startswith(prefix)}
