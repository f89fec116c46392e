"""List the runs and studies of a folder on one page, with the last evaluation of each run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import DataError
from edgewise.report.health import event_type
from edgewise.report.overview import Block, Overview, Section, cell, table
from edgewise.report.run_data import read_events, read_seconds
from edgewise.report.timeline import status

STUDY = "study.json"
"""File that a folder of planned runs has."""
DEPTH = 3
"""Levels below the folder at which runs are looked for; those of a study are at the third."""
INDEX = "index.html"


def has_runs(folder: Path) -> bool:
    """Return whether a folder is no run itself and holds runs or studies."""
    if not folder.is_dir() or _is_run(folder) or (folder / "config.json").exists():
        return False
    return next(_runs(folder, DEPTH), None) is not None or any(map(_is_study, folder.iterdir()))


def write_run_list(folder: Path, *, target: Path | None = None) -> Path:
    """Write the page that lists all runs and studies below a folder, and return its path.

    Args:
        folder: such as `runs`.
        target: the file to write; `index.html` in the folder if not given.

    Raises:
        DataError: the page cannot be written.
    """
    runs, studies = list(_runs(folder, DEPTH)), [path for path in sorted(folder.iterdir()) if _is_study(path)]
    path = folder / INDEX if target is None else target
    page = Overview(
        title=folder.resolve().name,
        eyebrow="runs",
        facts=[("runs", len(runs)), ("studies", len(studies))],
        sections=[
            Section(
                "runs",
                "Runs",
                "A click on the name of a column sorts by it. The value is the mean of the metric in the "
                "last evaluation.",
                [_run_table(runs, folder, path.parent)] if runs else [],
            ),
            Section(
                "studies",
                "Studies",
                "Seeds, sweeps and benchmarks, whose runs are above too.",
                [_study_table(studies, path.parent)] if studies else [],
            ),
        ],
    )
    try:
        files.replace(path, page.html().encode())
    except OSError as error:
        raise DataError(f"{path}: the page cannot be written: {error.strerror}") from error
    return path


def _runs(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the run folders below a folder, in order; links are not followed."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_dir() or path.name.startswith("."):
            continue
        if _is_run(path):
            yield path
        elif depth > 1:
            yield from _runs(path, depth - 1)


def _is_run(folder: Path) -> bool:
    return (folder / "config.json").is_file() and (folder / "versions.json").is_file()


def _is_study(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and (path / STUDY).is_file()


def _run_table(runs: list[Path], folder: Path, beside: Path) -> Block:
    columns = ["run", "trained", "seed", "status", "frames", "metric", "value", "best", "minutes", "began"]
    return table(columns, [_row(run, folder, beside) for run in runs])


def _row(run: Path, folder: Path, beside: Path) -> list[Any]:
    name = str(run.relative_to(folder))
    config = _object(run / "config.json")
    events = _events(run / "events.jsonl")
    if not config:
        return [
            _link(name, run, beside),
            None,
            None,
            cell("config.json cannot be read", state="bad"),
            *[None] * 6,
        ]
    chosen = config.get("evaluation")
    metric = str(chosen.get("metric", "return")) if isinstance(chosen, dict) else "return"
    values = [
        event[f"evaluation/{metric}"]
        for event in events
        if event_type(event) == "evaluation" and isinstance(event.get(f"evaluation/{metric}"), int | float)
    ]
    best = [event.get("value") for event in events if event_type(event) == "best"]
    frames = [event["frames"] for event in events if isinstance(event.get("frames"), int)]
    seconds = _seconds(run / "timing.csv")
    state = status(events) or {"state": "", "text": "not started"}
    trained = config.get("recipe") or f"{config.get('env_name')}, {config.get('algorithm_name')}"
    return [
        _link(name, run, beside),
        str(trained),
        config.get("seed") if isinstance(config.get("seed"), int) else None,
        cell(state["text"], state=state["state"]),
        frames[-1] if frames else 0,
        metric,
        float(values[-1]) if values else None,
        float(best[-1]) if best and isinstance(best[-1], int | float) else None,
        None if seconds is None else seconds / 60,
        str(events[0].get("time", ""))[:16].replace("T", " ") if events else None,
    ]


def _study_table(studies: list[Path], beside: Path) -> Block:
    rows = []
    for study in studies:
        kind, runs = str(_object(study / STUDY).get("kind", "")), list(_runs(study, 2))
        ended = [status(_events(run / "events.jsonl")) for run in runs]
        finished = sum(state is not None and state["text"] == "finished" for state in ended)
        rows.append([_link(study.name, study, beside), kind, len(runs), finished])
    return table(["study", "kind", "runs", "finished"], rows)


def _link(name: str, folder: Path, beside: Path) -> dict[str, Any]:
    """Return a cell that leads to the report of a run or study, or to its folder."""
    page = folder / "report.html"
    return cell(name, href=os.path.relpath(page if page.is_file() else folder, beside))


def _object(path: Path) -> dict[str, Any]:
    try:
        value = files.read_json(path)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _events(path: Path) -> list[dict[str, Any]]:
    try:
        return read_events(path)
    except OSError:
        return []


def _seconds(path: Path) -> float | None:
    try:
        return read_seconds(path)
    except (OSError, ValueError):
        return None
