"""Train every algorithm in every environment with several seeds, and aggregate the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from edgewise.config.run import AnyRun
from edgewise.studies.folder import Plan, first_difference, open_study
from edgewise.studies.grid_file import Entry, Grid
from edgewise.studies.grid_page import write_grid_page
from edgewise.studies.grid_results import Cell, GridResult, collect, plain, run_name
from edgewise.studies.listed_jobs import ListedJobs
from edgewise.studies.scheduler import Job, Program, run_jobs

KIND = "benchmark"


def run_grid(
    grid: Grid, cells: Mapping[Cell, AnyRun], *, jobs: int, out: Path | None, program: Program
) -> GridResult:
    """Run every cell with every seed, or continue where that was interrupted.

    Cells and seeds may be added to a study that exists; a cell whose config changed makes it another study.

    Raises:
        EdgewiseError: a run failed; the page of the others is written.
        Interrupted: on a signal; every run was saved.
    """
    configs = {f"{algorithm}/{env}": config.to_plain() for (algorithm, env), config in cells.items()}

    def differs(other: Plan) -> str | None:
        if other.get("kind") != KIND:
            return f"it is a study of kind {other.get('kind')}"
        cells = other.get("cells")
        if not isinstance(cells, dict):
            return "its plan has no cells"
        common = [name for name in configs if name in cells]
        return first_difference({n: configs[n] for n in common}, {n: cells[n] for n in common})

    plan: Plan = {"kind": KIND, "cells": configs}
    folder = open_study(out, plan, name=f"{grid.name}-benchmark", differs=differs)
    listed = [
        _job(grid, algorithm, env, cells[algorithm.name, env.name], index)
        for index in range(grid.seeds)
        for env in grid.environments
        for algorithm in grid.algorithms
    ]
    with folder.locked():
        if missing := {name: config for name, config in configs.items() if name not in folder.plan["cells"]}:
            folder.change_plan({**folder.plan, "cells": {**folder.plan["cells"], **missing}})
        source = ListedJobs(listed, folder)
        run_jobs(source, folder, program, jobs=jobs)
        result = collect(grid, cells, folder)
        folder.write("results.json", json.dumps(plain(result), indent=1, allow_nan=False) + "\n")
        write_grid_page(folder, grid, result)
    source.check()
    return result


def _job(grid: Grid, algorithm: Entry, environment: Entry, config: AnyRun, index: int) -> Job:
    seed = config.seed + index
    flags = [f"{name}={value}" for name, value in grid.flags(algorithm, environment) if name != "--seed"]
    words = (environment.reference, f"--algorithm={algorithm.reference}", *flags, f"--seed={seed}")
    return Job(run_name(algorithm.name, environment.name, seed), words, config.training.total_frames)
