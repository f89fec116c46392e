"""Facts, curriculum stages and events of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.report.health import NOT_FINITE, event_type
from edgewise.report.run_data import RunData

MAX_LOG = 200
_NOT_IN_TEXT = {"event", "frames", "time"}


def facts(run: RunData) -> dict[str, Any]:
    """Return name, status and a few figures of a run."""
    frames = run.metrics.columns.get("frames", np.zeros(0))
    known = frames[np.isfinite(frames)]
    types = [event_type(event) for event in run.events]
    return {
        "name": run.name,
        "label": run.label,
        "seed": run.seed,
        "recipe": run.config.get("recipe"),
        "device": run.config.get("device"),
        "frames": float(known[-1]) if len(known) else None,
        "seconds": run.seconds,
        "resumes": types.count("resume"),
        "status": status(run.events),
    }


def stages(run: RunData) -> list[dict[str, Any]]:
    """Return name, first and last frame of each curriculum stage, from the rows of metrics.csv."""
    names, frames = run.metrics.texts.get("stage", []), run.metrics.columns.get("frames", np.zeros(0))
    found: list[dict[str, Any]] = []
    for name, frame in zip(names, frames.tolist(), strict=False):
        if name and (not found or found[-1]["name"] != name):
            found.append({"name": name, "start": found[-1]["end"] if found else 0.0, "end": frame})
        elif name:
            found[-1]["end"] = frame
    return found


def log(run: RunData) -> list[dict[str, Any]]:
    """Return the newest events, each as one line of text."""
    return [
        {
            "kind": event_type(event),
            "frames": event.get("frames"),
            "time": event.get("time"),
            "text": ", ".join(f"{key} {value}" for key, value in event.items() if key not in _NOT_IN_TEXT),
        }
        for event in run.events[-MAX_LOG:]
    ]


def status(events: list[dict[str, Any]]) -> dict[str, str] | None:
    """Return the status of a run after its newest event."""
    if not events:
        return None
    if event_type(events[-1]) != "stop":
        return {"state": "", "text": "not finished"}
    reason = str(events[-1].get("reason", ""))
    if reason == "done":
        return {"state": "good", "text": "finished"}
    if NOT_FINITE in reason:
        return {"state": "bad", "text": "stopped on a number that is not finite"}
    return {"state": "warn", "text": f"stopped by {reason}" if reason else "stopped"}
