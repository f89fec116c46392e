"""Read how far a run is from its folder, while another process may be writing to it. Never imports torch."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from edgewise.config import files

TAIL = 1 << 16
"""Bytes at the end of metrics.csv in which its last row is looked for."""

MEASURE = "evaluation/"
"""Prefix of the measures of an evaluation in the event log."""


@dataclass(frozen=True)
class RunState:
    """How far a run is.

    Args:
        exists: whether the run has a folder.
        frames: trained so far.
        ended: reason of the last stop, None while the run is not stopped; `done` if all frames are trained.
        evaluations: frames to the mean of each measure.
    """

    exists: bool = False
    frames: int = 0
    ended: str | None = None
    evaluations: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether all frames are trained."""
        return self.ended == "done"

    def last(self, measure: str) -> float | None:
        """Return the mean of a measure in the last evaluation; None if there is none."""
        if not self.evaluations:
            return None
        return self.evaluations[max(self.evaluations)].get(measure)


def read_state(folder: Path) -> RunState:
    """Read the state of a run; files that are missing, incomplete or damaged count as not written yet."""
    if not (folder / "config.json").is_file():
        return RunState()
    frames, ended, evaluations = 0, None, {}
    for event in _events(folder / "events.jsonl"):
        frames, kind = _whole(event.get("frames"), frames), event.get("event")
        ended = str(event.get("reason", "")) if kind == "stop" else None
        if kind == "evaluation":
            evaluations[frames] = {
                name.removeprefix(MEASURE): float(value)
                for name, value in event.items()
                if name.startswith(MEASURE) and isinstance(value, int | float)
            }
    if ended is None:
        frames = max(frames, _last_row_frames(folder / "metrics.csv"))
    return RunState(True, frames, ended, dict(sorted(evaluations.items())))


def _events(path: Path) -> list[dict[str, object]]:
    try:
        text = files.read_bytes(path, largest=files.LARGEST_TABLE).decode(errors="replace")
    except OSError:
        return []
    events = []
    for line in text.splitlines():
        try:
            event = files.parse_json(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def _last_row_frames(path: Path) -> int:
    """Return the frames of the last complete row of metrics.csv, whose first column they are."""
    try:
        descriptor = files.open_to_read(path, largest=files.LARGEST_TABLE)
    except OSError:
        return 0
    with os.fdopen(descriptor, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL))
        lines = file.read().split(b"\n")[:-1]
    cell = lines[-1].partition(b",")[0] if lines else b""
    return int(cell) if cell.isdigit() and len(cell) <= files.MAX_DIGITS else 0


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
