"""What a finished run says of itself: how its policy does beside the baselines, and where its report is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgewise.evaluation.result import Evaluation
from edgewise.experiments.launch import REPORT
from edgewise.terminal.console import Console, table


def show_runs(runs: Sequence[Path], console: Console) -> None:
    """Shows how each of some runs ended; one document for programs, however many there are."""
    told = [_outcome(run) for run in runs]
    data = told[0][0] if len(told) == 1 else {"runs": [data for data, _ in told]}
    console.show(data, "\n\n".join(text for _, text in told))


def show_run(run: Path, console: Console) -> None:
    """Shows how a run ended."""
    show_runs([run], console)


def _outcome(run: Path) -> tuple[dict[str, Any], str]:
    """The last evaluation of a run, its baselines, and the path of its report last."""
    found = [Evaluation.load(path) for path in sorted((run / "evaluations").glob("*.json"))]
    own = [evaluation for evaluation in found if not evaluation.baseline][-1:]
    shown = [*own, *(evaluation for evaluation in found if evaluation.baseline)]
    report = run / REPORT
    data = {
        "run": str(run),
        "report": str(report) if report.exists() else None,
        "evaluation": [summary(evaluation) for evaluation in shown],
    }
    return data, f"{summary_table(shown)}\n\nrun folder: {run}\nreport:     {report}"


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation for programs: each measure's mean with its 95 % interval."""
    return {
        "policy": evaluation.policy,
        "baseline": evaluation.baseline,
        "frames": evaluation.frames,
        "episodes": evaluation.episodes,
        "seed": evaluation.seed,
        "settings": dict(evaluation.settings),
        "measures": {
            name: {"mean": interval.estimate, "low": interval.low, "high": interval.high}
            for name, interval in evaluation.summary().items()
        },
    }


def summary_table(evaluations: list[Evaluation]) -> str:
    """Evaluations for people: one row each, every measure's mean with its 95 % interval."""
    summaries = [evaluation.summary() for evaluation in evaluations]
    measures = list(dict.fromkeys(name for found in summaries for name in found))
    settings = list(dict.fromkeys(name for evaluation in evaluations for name in evaluation.settings))
    rows = [
        [
            *(str(evaluation.settings.get(name, "")) for name in settings),
            evaluation.policy,
            evaluation.episodes,
            *(_interval(found[name]) if name in found else "" for name in measures),
        ]
        for evaluation, found in zip(evaluations, summaries, strict=True)
    ]
    return table([*settings, "policy", "episodes", *measures], rows)


def _interval(interval: Any) -> str:
    return f"{interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
