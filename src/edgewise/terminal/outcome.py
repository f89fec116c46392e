"""Show the results of finished runs: the last evaluation, the baselines and the path of the report."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError, DataError
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.launch import REPORT
from edgewise.terminal.console import Console, fitting, table

log = logging.getLogger(__name__)

ALL = "all"
"""What `--measures` is given for all of them."""


def show_runs(runs: Sequence[Path], console: Console) -> None:
    """Show the results of runs; as JSON, they are one document."""
    outcomes = [_outcome(run) for run in runs]
    data = outcomes[0][0] if len(outcomes) == 1 else {"runs": [data for data, _ in outcomes]}
    console.show(data, "\n\n".join(text for _, text in outcomes))


def show_run(run: Path, console: Console) -> None:
    """Show the results of one run."""
    show_runs([run], console)


def _outcome(run: Path) -> tuple[dict[str, Any], str]:
    """Return the last evaluation of a run, its baselines and the path of its report, as data and as text."""
    found = [
        evaluation
        for path in sorted((run / "evaluations").glob("*.json"))
        if (evaluation := _load(path)) is not None
    ]
    latest = [evaluation for evaluation in found if not evaluation.baseline][-1:]
    shown = [*latest, *(evaluation for evaluation in found if evaluation.baseline)]
    report = run / REPORT
    data = {
        "run": str(run),
        "report": str(report) if report.exists() else None,
        "evaluation": [summary(evaluation) for evaluation in shown],
    }
    return data, f"{summary_table(shown)}\n\nrun folder: {run}\nreport:     {report}"


def _load(path: Path) -> Evaluation | None:
    """Read an evaluation; one that is damaged is named in a warning and left out."""
    try:
        return Evaluation.load(path)
    except DataError as error:
        log.warning("%s", error.message)
        return None


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as data: the mean of each measure with its 95 % interval."""
    return {
        "policy": evaluation.policy,
        "baseline": evaluation.baseline,
        "frames": evaluation.frames,
        "episodes": evaluation.episodes,
        "seed": evaluation.seed,
        "settings": dict(evaluation.settings),
        **_decoding(evaluation),
        "measures": {
            name: {"mean": interval.estimate, **interval.ends()}
            for name, interval in evaluation.summary().items()
        },
    }


def _decoding(evaluation: Evaluation) -> dict[str, Any]:
    """Return how several episodes of each instance were played, and how many; nothing where it was one."""
    if evaluation.decode is None:
        return {}
    return {"decode": evaluation.decode, "trajectories": evaluation.trajectories}


def decoding_note(evaluations: Sequence[Evaluation]) -> str:
    """Return a line for each decoding: instances, seed, and the episodes of which the best counts."""
    lines = {
        f"{one.decode}: {one.episodes} instances of seed {one.seed}, the best of {one.trajectories} "
        f"{'episode' if one.trajectories == 1 else 'episodes'} of each by return"
        for one in evaluations
        if one.decode is not None
    }
    return "\n".join(sorted(lines))


def summary_table(
    evaluations: list[Evaluation], *, measures: Sequence[str] = (), first: str = "return"
) -> str:
    """Format evaluations as a table: one row each, with the mean of each measure and its 95 % interval.

    Args:
        evaluations: one row each.
        measures: to show, `all` for all of them; if not given, those that fit into the window.
        first: the measure that is shown first.

    Raises:
        ConfigError: there is no such measure.
    """
    if not evaluations:
        return ""
    header, *rows = replace(evaluations[0], others=tuple(evaluations[1:])).table()
    count = header.index("episodes")
    known = sorted(header[count + 1 :], key=lambda name: name != first)
    unknown = [name for name in measures if name not in (*known, ALL)]
    if unknown:
        raise ConfigError(
            f"--measures: got {', '.join(unknown)}, expected some of {', '.join(known)}, or {ALL}"
        )
    chosen = known if not measures or ALL in measures else measures
    order = [*range(count + 1), *(header.index(name) for name in chosen)]
    header, rows = [header[place] for place in order], [[row[place] for place in order] for row in rows]
    shown = len(header) if measures else fitting(header, rows, needed=count + 2)
    cells = [[*row[:count], int(row[count]), *row[count + 1 : shown]] for row in rows]
    hidden = len(header) - shown
    note = f"\n{hidden} more {'measure' if hidden == 1 else 'measures'}: --measures all" if hidden else ""
    return table(header[:shown], cells) + note


def paired_table(rows: Sequence[dict[str, Any]]) -> str:
    """Format rows of `paired_rows`, with the share of changed actions where they have it."""
    header = ["run", "against", "settings", "measure", "n", "run's", "other's", "difference", "ratio"]
    shown = [
        [
            row["run"],
            row["other"],
            " ".join(f"{name}={value}" for name, value in row["settings"].items()),
            row["measure"],
            row.get("n", row["episodes"]),
            f"{row['mean']:.4g}",
            f"{row['other_mean']:.4g}",
            _span(row, "difference"),
            _span(row, "ratio"),
        ]
        for row in rows
    ]
    if any("changed_actions" in row for row in rows):
        header.append("actions changed")
        shown = [[*cells, f"{row['changed_actions']:.1%}"] for cells, row in zip(shown, rows, strict=True)]
    return table(header, shown)


def _span(row: dict[str, Any], name: str) -> str:
    if row[name] is None:
        return ""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    span = "no interval" if low is None or high is None else f"[{low:.3g}, {high:.3g}]"
    return f"{row[name]:.3g} {span}"
