"""The page of a sweep: best so far, what mattered, and every trial with its run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from edgewise.evaluation.statistics import Interval
from edgewise.report.numbers import number
from edgewise.report.overview import Block, Overview, Section, cell, charts, intervals, line, table
from edgewise.studies.folder import StudyFolder
from edgewise.studies.space import Choice, Space, describe
from edgewise.studies.trials import State, Trial

DOTS: dict[State, str] = {"complete": "good", "pruned": "", "failed": "bad", "running": "warn"}


def write_sweep_page(
    folder: StudyFolder,
    space: Space,
    trials: Sequence[Trial],
    *,
    best: Trial | None,
    importances: dict[str, float],
    metric: str,
) -> Path:
    """Write the page of a sweep, and return its path."""
    counts = Counter(trial.state for trial in trials)
    states = ", ".join(f"{counts[state]} {state}" for state in DOTS if counts[state])
    page = Overview(
        title=folder.path.resolve().name,
        eyebrow=f"sweep of {folder.plan['config'].get('recipe') or folder.plan['config'].get('name')}",
        facts=[("trials", states or "none"), ("metric", f"{metric}, {_direction(folder)}")],
        tiles=[] if best is None else [(f"best {metric}", best.value, best.name), *_best_values(best)],
        sections=[
            Section("progress", "Best so far", _progress_lead(metric), _progress(folder, trials, metric)),
            Section(
                "importances",
                "What mattered",
                "Share of each setting in the difference between the best complete trials and the others "
                "(PED-ANOVA), and every trial over each setting. Pruned trials are grey.",
                [*_importances(importances, len(trials)), *_scatters(space, trials, best, metric)],
            ),
            Section(
                "trials",
                "Trials",
                "Every trial leads to the report of its run.",
                _table(space, trials, metric),
            ),
        ],
        notes=[f"{trial.name} failed: {trial.reason}" for trial in trials if trial.state == "failed"],
        footer=f"space: {', '.join(f'{name}={text}' for name, text in describe(space).items())}",
    )
    return folder.write("report.html", page.html())


def _direction(folder: StudyFolder) -> str:
    return "maximised" if folder.plan["config"]["evaluation"]["maximise"] else "minimised"


def _best_values(best: Trial) -> list[tuple[str, Any, str]]:
    return [
        (name, number(value) if isinstance(value, float) else str(value), "")
        for name, value in best.params.items()
    ]


def _progress_lead(metric: str) -> str:
    return f"The best {metric} of complete trials, in the order in which they were proposed."


def _progress(folder: StudyFolder, trials: Sequence[Trial], metric: str) -> list[Block]:
    complete = [
        (trial.number, trial.value)
        for trial in trials
        if trial.state == "complete" and trial.value is not None
    ]
    if not complete:
        return []
    better = max if _direction(folder) == "maximised" else min
    x = [float(number) for number, _ in complete]
    y = [value for _, value in complete]
    so_far = list(accumulate(y, better))
    return [charts("trial", {metric: [line("best so far", x, so_far), line("trial", x, y, colour=1)]})]


def _importances(shares: dict[str, float], trials: int) -> list[Block]:
    if not shares:
        return []
    nan = float("nan")
    found = {name: Interval(share, nan, nan, trials) for name, share in shares.items()}
    return [intervals({"importance": found})]


def _scatters(space: Space, trials: Sequence[Trial], best: Trial | None, metric: str) -> list[Block]:
    shown = [trial for trial in trials if trial.state in ("complete", "pruned") and trial.value is not None]
    if not shown:
        return []
    plots = []
    for name, dimension in space.items():
        points = [
            {
                "x": trial.params[name],
                "y": number(trial.value or 0.0),
                "label": trial.name,
                "state": "best" if best is not None and trial.number == best.number else trial.state,
            }
            for trial in shown
        ]
        if isinstance(dimension, Choice):
            axis: Block = {"choices": list(dimension.options)}
        else:
            axis = {"low": dimension.low, "high": dimension.high, "log": dimension.is_log}
        plots.append({"name": name, "measure": metric, "points": points, **axis})
    return [{"type": "scatters", "plots": plots}]


def _table(space: Space, trials: Sequence[Trial], metric: str) -> list[Block]:
    rows = [
        [
            cell(trial.name, href=f"runs/{trial.name}/report.html"),
            cell(trial.state, state=DOTS[trial.state]),
            trial.value,
            trial.frames,
            *(trial.params[name] for name in space),
        ]
        for trial in trials
    ]
    return [table(["trial", "state", metric, "frames", *space], rows)] if rows else []
