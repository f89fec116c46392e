"""Read the data of a report from a run folder; missing files are ignored, broken ones are noted."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from edgewise.config import files as run_files
from edgewise.config.errors import DataError
from edgewise.evaluation.replays import files as replay
from edgewise.evaluation.result import Evaluation
from edgewise.report import ablations
from edgewise.report.metrics_table import CLOCKS, MetricsTable, read_metrics
from edgewise.runs import digests
from edgewise.runs.format import check_run_format

MAX_REPLAYS = 6
MAX_REPLAY_BYTES = 8_000_000
MAX_EVENTS = 10_000

T = TypeVar("T")


@dataclass(frozen=True)
class RecordedEpisode:
    """A replay with the name of its file, which the trainer builds from the frames and the episode."""

    name: str
    replay: dict[str, Any]


@dataclass(frozen=True)
class RunData:
    """The data of one run.

    Args:
        folder: the run folder.
        config: the resolved configuration.
        versions: versions.json.
        metrics: metrics.csv.
        events: events.jsonl, oldest first.
        evaluations: in order of training frames, baselines last.
        replays: recorded episodes, the latest in training first.
        ablations: rows of ablations.json.
        seconds: time spent over all processes of the run.
        notes: problems while reading, one sentence each.
    """

    folder: Path
    config: dict[str, Any]
    versions: dict[str, Any]
    metrics: MetricsTable
    events: list[dict[str, Any]]
    evaluations: list[Evaluation]
    replays: list[RecordedEpisode]
    ablations: list[dict[str, Any]] = field(default_factory=list)
    seconds: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.resolve().name

    @property
    def seed(self) -> Any:
        """Seed of the run, None if unknown."""
        return self.config.get("seed")

    @property
    def label(self) -> str:
        """Label that runs which differ only in their seed share."""
        return str(self.config.get("recipe") or self.config.get("name") or self.name)


def read_run(folder: Path | str) -> RunData:
    """Read a run folder.

    Raises:
        DataError: the folder does not exist or has no files of a run.
        CheckpointError: another version of edgewise wrote it in a format that this one cannot read.
    """
    place = Path(folder)
    if not place.is_dir():
        raise DataError(f"{folder}: no such run folder", hint="give the folder that `edgewise train` printed")
    check_run_format(place)
    notes: list[str] = []
    run = RunData(
        folder=place,
        config=_part(place / "config.json", _read_object, {}, notes),
        versions=_part(place / "versions.json", _read_object, {}, notes),
        metrics=_part(place / "metrics.csv", read_metrics, MetricsTable(), notes),
        events=_part(place / "events.jsonl", read_events, [], notes),
        evaluations=_evaluations(place / "evaluations", notes),
        replays=_replays(place / "replays", notes),
        ablations=_part(place / ablations.FILE, ablations.read_ablations, [], notes),
        seconds=_part(place / "timing.csv", read_seconds, None, notes),
        notes=notes,
    )
    unread = " ".join(notes)
    notes += [
        f"{name} {fault}" for name, fault in digests.damaged_files(place) if Path(name).name not in unread
    ]
    if not (run.config or run.metrics.rows or run.evaluations or run.replays or run.events or notes):
        raise DataError(f"{folder}: not a run folder", hint="a run folder has config.json and metrics.csv")
    return run


def _part(path: Path, read: Callable[[Path], T], otherwise: T, notes: list[str]) -> T:
    """Read one file of the folder; returns `otherwise` if it is missing or cannot be read."""
    if not os.path.lexists(path):
        return otherwise
    try:
        return read(path)
    except DataError as error:
        notes.append(error.message.replace(f"{path.parent}/", ""))
    except (OSError, ValueError) as error:
        notes.append(f"{path.name} cannot be read: {error}")
    return otherwise


def _read_object(path: Path) -> dict[str, Any]:
    value = run_files.read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path.name}: an object is needed, got a {type(value).__name__}")
    return value


def read_events(path: Path) -> list[dict[str, Any]]:
    """Read the newest events; an incomplete line, left by a crash, is ignored."""
    events = []
    text = run_files.read_bytes(path, largest=run_files.LARGEST_TABLE).decode(errors="replace")
    for line in text.splitlines()[-MAX_EVENTS:]:
        try:
            event = run_files.parse_json(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def _evaluations(folder: Path, notes: list[str]) -> list[Evaluation]:
    read = [_part(path, Evaluation.load, None, notes) for path in sorted(folder.glob("*.json"))]
    found = [evaluation for evaluation in read if evaluation is not None]
    return sorted(found, key=lambda one: (one.baseline, one.frames is None, one.frames or 0, one.policy))


def _replays(folder: Path, notes: list[str]) -> list[RecordedEpisode]:
    """Read the newest episodes, then one of each earlier evaluation, evenly spaced back to the first."""
    small = []
    for path in sorted(folder.glob("*.json")):
        if path.lstat().st_size <= MAX_REPLAY_BYTES:
            small.append(path)
        else:
            notes.append(f"{path.name} is too large for the report")
    times: dict[str, list[Path]] = {}
    for path in small:
        times.setdefault(path.stem.partition("-")[0], []).append(path)
    newest, *earlier = list(times.values())[::-1] or [[]]
    shown = newest[: MAX_REPLAYS // 2]
    shown += _evenly_spaced([paths[0] for paths in earlier], MAX_REPLAYS - len(shown))
    read = [(path, _part(path, replay.load, None, notes)) for path in shown]
    return [RecordedEpisode(path.stem, episode) for path, episode in read if episode is not None]


def _evenly_spaced(items: list[T], count: int) -> list[T]:
    """Return at most `count` items at equal distances, including the last."""
    if len(items) <= count:
        return items
    return [items[(part + 1) * len(items) // count - 1] for part in range(count)]


def read_seconds(path: Path) -> float | None:
    """Return the sum of all seconds in the last row of timing.csv."""
    table = read_metrics(path)
    last = [values[-1] for name, values in table.columns.items() if name not in CLOCKS and len(values)]
    return float(sum(last)) if last else None
