"""Compact, save and load replays: recorded episodes in the JSON format that every environment renders to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import DataError
from edgewise.evaluation.replays.check import GUIDE, applied, check
from edgewise.evaluation.replays.schema import FORMAT
from edgewise.runs import digests

__all__ = ["FORMAT", "check", "compact", "load", "save"]


def compact(replay: Mapping[str, Any], *, digits: int = 5) -> dict[str, Any]:
    """Return the same replay in fewer bytes: numbers rounded, frames reduced to what they change.

    Args:
        replay: a replay that passed `check`.
        digits: significant digits of each number.
    """
    rounded: dict[str, Any] = _rounded(dict(replay), digits)
    shown = {layer["name"]: dict(layer) for layer in rounded["layers"]}
    frames = []
    for frame in rounded["frames"]:
        compacted = {}
        for name, fields in frame.items():
            changes = {
                field: change
                for field, value in fields.items()
                if (change := _change(shown[name].get(field), value)) is not None
            }
            shown[name] = applied(shown[name], fields)
            if changes:
                compacted[name] = changes
        frames.append(compacted)
    return {**rounded, "frames": frames}


def save(replay: Mapping[str, Any], path: Path | str) -> Path:
    """Check a replay and write it in compact form."""
    target = Path(path)
    text = json.dumps(compact(check(replay)), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    digests.replace(target, text.encode())
    return target


def load(path: Path | str) -> dict[str, Any]:
    """Read and check a replay."""
    try:
        replay = files.read_json(Path(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}", hint=GUIDE) from error
    try:
        return check(replay)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from error


def _change(before: Any, value: Any) -> Any:
    """Return the shortest encoding of `value` after `before`: None, changes by index, or all of it."""
    if value == before:
        return None
    if not (isinstance(value, list) and isinstance(before, list) and len(value) == len(before)):
        return value
    changes = {str(index): item for index, item in enumerate(value) if item != before[index]}
    return changes if 2 * len(changes) < len(value) else value


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {name: _rounded(item, digits) for name, item in value.items()}
    return [_rounded(item, digits) for item in value] if isinstance(value, list | tuple) else value
