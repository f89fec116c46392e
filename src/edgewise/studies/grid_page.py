"""The page of a grid: aggregates over all environments, and learning curves in each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edgewise.evaluation.statistics import Interval, mean_interval
from edgewise.report.curves import mean_curve
from edgewise.report.metrics_table import Curve
from edgewise.report.overview import Block, Overview, Section, cell, charts, intervals, line, table
from edgewise.studies.folder import StudyFolder
from edgewise.studies.grid_file import Grid
from edgewise.studies.grid_results import GridResult, run_name
from edgewise.studies.scores import Aggregates

COLOURS = 6


def write_grid_page(folder: StudyFolder, grid: Grid, result: GridResult) -> Path:
    """Write the page of a grid, and return its path."""
    colours = {entry.name: index % COLOURS for index, entry in enumerate(grid.algorithms)}
    found = result.aggregates
    runs = sum(map(len, result.values.values()))
    page = Overview(
        title=grid.name,
        eyebrow="benchmark",
        facts=[
            ("algorithms", len(grid.algorithms)),
            ("environments", len(grid.environments)),
            ("seeds", grid.seeds),
            ("runs", f"{runs} of {len(grid.algorithms) * len(grid.environments) * grid.seeds}"),
        ],
        sections=[
            Section(
                "aggregates",
                "Over all environments",
                "Scores are values on a scale from 0 to 1 in each environment (see below). IQM is the mean "
                "of the middle half of all runs; the optimality gap is how far scores are below 1, so lower "
                "is better. 95 % intervals over the seeds of each environment; n is their number.",
                [] if found is None else [intervals(found.measures)],
            ),
            Section(
                "profiles",
                "Performance profiles",
                "The share of runs with a score above each value; a higher curve is better.",
                [] if found is None else [_profiles(found, colours)],
            ),
            Section(
                "improvement",
                "Probability of improvement",
                "How often a run of the first algorithm is better than a run of the second in the same "
                "environment; ties count half.",
                [] if found is None or not found.improvement else [_improvement(found)],
            ),
            Section(
                "environments",
                "Each environment",
                "Evaluations over training with 95 % bands over seeds, and values of the last evaluation.",
                [*_curves(grid, result, colours), _values(grid, result), _ranges(grid, result)],
            ),
            Section("runs", "Runs", "Every run leads to its report.", [_runs(result)] if runs else []),
        ],
        notes=[
            f"{name} has runs that are not finished, and is left out of the aggregates"
            for name in result.incomplete
        ],
    )
    return folder.write("report.html", page.html())


def _profiles(found: Aggregates, colours: dict[str, int]) -> Block:
    lines = [
        line(
            name,
            list(one.thresholds),
            list(one.share),
            colour=colours[name],
            band=None if np.isnan(one.low).any() else (list(one.low), list(one.high)),
        )
        for name, one in found.profiles.items()
    ]
    return charts("score", {"share of runs": lines})


def _improvement(found: Aggregates) -> Block:
    rows = [
        [left, right, cell(f"{one.estimate:.0%}", order=one.estimate, range_=_range(one, ".0%"))]
        for (left, right), one in found.improvement.items()
    ]
    return table(["algorithm", "over", "better in"], rows)


def _curves(grid: Grid, result: GridResult, colours: dict[str, int]) -> list[Block]:
    drawn: dict[str, list[Block]] = {}
    for env in grid.environments:
        lines = []
        for algorithm in grid.algorithms:
            runs = [
                Curve(x, y, y, y)
                for points in result.curves[algorithm.name, env.name].values()
                if len(points) > 1
                for x, y in [(np.array(list(points), dtype=np.float64), np.array(list(points.values())))]
            ]
            if runs:
                curve = mean_curve(runs)
                band = (list(curve.low), list(curve.high))
                lines.append(
                    line(
                        algorithm.name,
                        list(curve.x),
                        list(curve.y),
                        colour=colours[algorithm.name],
                        band=band,
                        cut=curve.cut,
                    )
                )
        if lines:
            drawn[f"{env.name}: {result.metrics[env.name]}"] = lines
    return [charts("frames", drawn)] if drawn else []


def _values(grid: Grid, result: GridResult) -> Block:
    rows = []
    for algorithm in grid.algorithms:
        row: list[object] = [algorithm.name]
        for env in grid.environments:
            values = list(result.values[algorithm.name, env.name].values())
            if not values:
                row.append(None)
                continue
            one = mean_interval(values)
            row.append(cell(f"{one.estimate:.4g}", order=one.estimate, range_=_range(one, ".4g")))
        rows.append(row)
    return table(
        ["algorithm", *(f"{env.name}: {result.metrics[env.name]}" for env in grid.environments)], rows
    )


def _ranges(grid: Grid, result: GridResult) -> Block:
    rows = [
        [
            env.name,
            *map(float, result.ranges[env.name]),
            "as given" if env.range else "worst and best run of this grid",
        ]
        for env in grid.environments
    ]
    return table(["environment", "score 0 at", "score 1 at", "from"], rows)


def _runs(result: GridResult) -> Block:
    rows = []
    for (algorithm, env), seeds in result.values.items():
        for seed, value in seeds.items():
            name = run_name(algorithm, env, seed)
            rows.append([algorithm, env, cell(str(seed), order=seed, href=f"runs/{name}/report.html"), value])
    return table(["algorithm", "environment", "seed", "value"], rows)


def _range(one: Interval, style: str) -> str:
    bounds = f"{one.low:{style}} to {one.high:{style}}, " if one.has_bounds else ""
    return f"{bounds}n={one.samples}"
