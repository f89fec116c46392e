"""The format number of run folders: folders that another version wrote in another format are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import CheckpointError

FORMAT = 3
"""Version of the layout, config and checkpoints of a run folder; it is recorded in versions.json."""
READABLE = (2, FORMAT)
"""Versions that can be read: 2 is that of edgewise 0.2, whose configs `upgrade` reads."""


def check_run_format(folder: Path) -> None:
    """Check that this version can read a run folder.

    The format is read from versions.json; runs of edgewise 0.1 have none there. If it is missing or
    broken, a run of 0.1 is recognised by its config.json.

    Raises:
        CheckpointError: the folder has another format.
    """
    versions = _read(folder / "versions.json")
    found = (
        _format_of_config(_read(folder / "config.json")) if versions is None else versions.get("format", 1)
    )
    if found in READABLE:
        return
    if found == 1:
        raise CheckpointError(
            f"{folder} was written by edgewise 0.1, which this version cannot read",
            hint="use edgewise 0.1 for it, or train again",
        )
    raise CheckpointError(
        f"{folder} has run format {found!r}, and this version of edgewise reads format "
        f"{' and '.join(map(str, READABLE))}",
        hint="use the version of edgewise that wrote it",
    )


def _format_of_config(config: dict[str, Any] | None) -> int:
    """Return 1 for a config of edgewise 0.1, whose rollout length is `training.steps`."""
    training = (config or {}).get("training")
    old = isinstance(training, dict) and "steps" in training and "rollout_length" not in training
    return 1 if old else FORMAT


def _read(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; returns None if there is none."""
    try:
        value = files.read_json(path)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
