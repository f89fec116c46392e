"""Train one config with several seeds, and aggregate the results over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.config.run import AnyRun
from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.statistics import Interval
from edgewise.report.comparison import entrants, main_set
from edgewise.report.page import write_report
from edgewise.report.run_data import read_run
from edgewise.studies.folder import Plan, first_difference, open_study
from edgewise.studies.listed_jobs import ListedJobs
from edgewise.studies.scheduler import Job, Program, run_jobs

KIND = "seeds"


@dataclass(frozen=True)
class SeedsResult:
    """The result of training with several seeds.

    Args:
        folder: of the study.
        seeds: whose runs are finished.
        rows: for the policy and each baseline: its name, the number of seeds (0 for a baseline), and the mean
            of each measure with its 95 % interval, over seeds for the policy, over episodes for a baseline.
        report: the page.
    """

    folder: Path
    seeds: list[int]
    rows: list[tuple[str, int, dict[str, Interval]]]
    report: Path


def train_seeds(
    config: AnyRun, words: Sequence[str], *, seeds: int, jobs: int, out: Path | None, program: Program
) -> SeedsResult:
    """Train with the seeds `config.seed`, `config.seed + 1`, …, or continue where that was interrupted.

    Args:
        config: of the runs.
        words: of `edgewise train` for this config, without the seed.
        seeds: number of seeds; more than before add runs to those that exist.
        jobs: number of runs at a time.
        out: folder of the study; found or created under `runs/` if not given.
        program: that runs the children.
    """
    plan: Plan = {"kind": KIND, "config": config.to_plain()}

    def differs(other: Plan) -> str | None:
        """Compare without what depends on how the command was typed."""
        return first_difference(plan, {name: other.get(name) for name in plan})

    folder = open_study(out, plan, name=f"{config.name}-seeds", differs=differs)
    chosen = range(config.seed, config.seed + seeds)
    listed = [
        Job(f"seed-{seed}", (*words, f"--seed={seed}"), config.training.total_frames) for seed in chosen
    ]
    with folder.locked():
        source = ListedJobs(listed, folder)
        run_jobs(source, folder, program, jobs=jobs)
        finished = [folder.run(job.name) for job in listed if job.name not in source.failed]
        if finished:
            write_report(*finished, target=folder.report)
    source.check()
    return SeedsResult(folder.path, list(chosen), _rows(finished), folder.report)


def _rows(runs: Sequence[Path]) -> list[tuple[str, int, dict[str, Interval]]]:
    evaluations: list[list[Evaluation]] = [read_run(run).evaluations for run in runs]
    main = main_set([one for run in evaluations for one in run])
    if main is None:
        return []
    rows = []
    for entrant in entrants({"policy": evaluations}, main):
        measures = dict.fromkeys(name for one in entrant.evaluations for name in one.measures())
        intervals = {name: found for name in measures if (found := entrant.interval(name)) is not None}
        label = entrant.label if entrant.baseline else "policy"
        rows.append((label, 0 if entrant.baseline else len(entrant.evaluations), intervals))
    return rows


def plain(result: SeedsResult) -> dict[str, Any]:
    """Return a result as plain values."""
    return {
        "study": str(result.folder),
        "report": str(result.report),
        "seeds": result.seeds,
        "runs": [str(result.folder / "runs" / f"seed-{seed}") for seed in result.seeds],
        "policies": [
            {
                "policy": name,
                "seeds": seeds,
                "measures": {
                    measure: {"mean": one.estimate, **one.ends()} for measure, one in intervals.items()
                },
            }
            for name, seeds, intervals in result.rows
        ],
    }
