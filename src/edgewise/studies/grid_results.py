"""The results of a grid: values and curves of every run, on one scale over environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.config.run import AnyRun
from edgewise.evaluation.bounds import Values
from edgewise.evaluation.statistics import Interval
from edgewise.studies.folder import StudyFolder
from edgewise.studies.grid_file import Entry, Grid
from edgewise.studies.run_state import RunState, read_state
from edgewise.studies.scores import Aggregates, aggregate, normalised

Cell = tuple[str, str]
"""Names of an algorithm and an environment."""


@dataclass(frozen=True)
class GridResult:
    """The results of a grid.

    Args:
        folder: of the study.
        metrics: environment to its metric.
        ranges: environment to the values that count as 0 and 1.
        values: cell to seed to the metric in the last evaluation.
        curves: cell to seed to frames to the metric.
        incomplete: algorithms that are left out of the aggregates, since a run of theirs failed.
        aggregates: over environments and seeds, of the others; None if there are none.
    """

    folder: Path
    metrics: dict[str, str]
    ranges: dict[str, tuple[float, float]]
    values: dict[Cell, dict[int, float]]
    curves: dict[Cell, dict[int, dict[int, float]]]
    incomplete: list[str]
    aggregates: Aggregates | None


def collect(grid: Grid, cells: Mapping[Cell, AnyRun], folder: StudyFolder) -> GridResult:
    """Read the results of all finished runs."""
    states = {
        (cell, seed): read_state(folder.run(run_name(*cell, seed)))
        for cell, config in cells.items()
        for seed in range(config.seed, config.seed + grid.seeds)
    }
    values: dict[Cell, dict[int, float]] = {cell: {} for cell in cells}
    curves: dict[Cell, dict[int, dict[int, float]]] = {cell: {} for cell in cells}
    for (cell, seed), state in states.items():
        metric = cells[cell].evaluation.metric
        value = state.last(metric)
        if state.is_done and value is not None:
            values[cell][seed] = value
            curves[cell][seed] = _curve(state, metric)
    names = [each.name for each in grid.algorithms]
    whole = [name for name in names if _is_whole(grid, values, name)]
    ranges = {env.name: _range(env, cells, values) for env in grid.environments}
    scores = {name: _scores(grid, values, ranges, name) for name in whole}
    return GridResult(
        folder=folder.path,
        metrics={env: config.evaluation.metric for (_, env), config in cells.items()},
        ranges=ranges,
        values=values,
        curves=curves,
        incomplete=[name for name in names if name not in whole],
        aggregates=aggregate(scores) if scores else None,
    )


def run_name(algorithm: str, environment: str, seed: int) -> str:
    """Return the name of a run folder."""
    return f"{algorithm}--{environment}--seed-{seed}"


def plain(result: GridResult) -> dict[str, Any]:
    """Return results as plain values; None for what is not finite."""
    found = result.aggregates
    return {
        "study": str(result.folder),
        "metrics": result.metrics,
        "ranges": {env: list(ends) for env, ends in result.ranges.items()},
        "runs": [
            {"algorithm": algorithm, "environment": env, "seed": seed, "value": value}
            for (algorithm, env), seeds in result.values.items()
            for seed, value in seeds.items()
        ],
        "incomplete": result.incomplete,
        "aggregates": {}
        if found is None
        else {
            name: {algorithm: _plain(one) for algorithm, one in rows.items()}
            for name, rows in found.measures.items()
        },
        "probability_of_improvement": []
        if found is None
        else [
            {"algorithm": left, "over": right, **_plain(one)}
            for (left, right), one in found.improvement.items()
        ],
        "performance_profiles": {}
        if found is None
        else {
            name: {"score": one.thresholds.tolist(), "share": one.share.tolist()}
            for name, one in found.profiles.items()
        },
    }


def _curve(state: RunState, metric: str) -> dict[int, float]:
    return {frames: found[metric] for frames, found in state.evaluations.items() if metric in found}


def _is_whole(grid: Grid, values: Mapping[Cell, Mapping[int, float]], algorithm: str) -> bool:
    return all(len(values[algorithm, env.name]) == grid.seeds for env in grid.environments)


def _range(
    environment: Entry, cells: Mapping[Cell, AnyRun], values: Mapping[Cell, Mapping[int, float]]
) -> tuple[float, float]:
    """Return the values that count as 0 and 1: as given, or those of the worst and the best run."""
    if environment.range is not None:
        return environment.range
    here = [cell for cell in cells if cell[1] == environment.name]
    found = [value for cell in here for value in values[cell].values()]
    maximise = cells[here[0]].evaluation.maximise
    ends = (min(found), max(found)) if found else (0.0, 1.0)
    return ends if maximise else ends[::-1]


def _scores(
    grid: Grid,
    values: Mapping[Cell, Mapping[int, float]],
    ranges: Mapping[str, tuple[float, float]],
    algorithm: str,
) -> Values:
    """Return the scores of an algorithm, `[seeds, environments]`."""
    columns = []
    for env in grid.environments:
        seeds = values[algorithm, env.name]
        column = np.array([seeds[seed] for seed in sorted(seeds)])
        columns.append(normalised(column, *ranges[env.name]))
    return np.stack(columns, axis=1)


def _plain(interval: Interval) -> dict[str, float | int | None]:
    return {"value": interval.estimate, **interval.ends()}
