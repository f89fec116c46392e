"""Records which code of the user's a run was trained with, and finds out whether it has changed since."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewise.config import plugins
from edgewise.config.errors import CheckpointError
from edgewise.config.plugins import CodeRecord
from edgewise.experiments.recipe import AnyRun
from edgewise.training import durable

CODE = "code.json"

log = logging.getLogger(__name__)


def records_of(config: AnyRun) -> list[CodeRecord]:
    """Return the records of a config's environment, algorithm and other extensions; ours are left out."""
    return plugins.record_code(dict(_extensions(config)))


def write_code(config: AnyRun, folder: Path) -> None:
    """Write the records of a new run; no file where it uses no code but ours."""
    records = records_of(config)
    if records:
        plain = [record.to_plain() for record in records]
        durable.write_whole(folder / CODE, (json.dumps(plain, indent=2) + "\n").encode())


def code_changes(config: AnyRun, folder: Path) -> list[str]:
    """Return, in words, how the code of a run differs from what it was trained with."""
    file = folder / CODE
    if not file.is_file():
        return []
    try:
        recorded = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return [f"{file} cannot be read, so it is unknown which code the run was trained with"]
    if not isinstance(recorded, list) or not all(isinstance(each, dict) for each in recorded):
        return [f"{file} is not a list of records, so it is unknown which code the run was trained with"]
    return plugins.changed_code(recorded, records_of(config))


def warn_of_changes(config: AnyRun, folder: Path) -> list[str]:
    """Log every change of code; return them."""
    changes = code_changes(config, folder)
    for change in changes:
        log.warning("%s: %s; results may differ", folder, change)
    return changes


def refuse_changes(config: AnyRun, folder: Path) -> None:
    """Raise CheckpointError if the code of a run has changed."""
    changes = code_changes(config, folder)
    if changes:
        raise CheckpointError(
            f"{folder} was trained with other code: {'; '.join(changes)}",
            hint="restore the code, or continue with --accept-changed-code",
        )


def _extensions(config: AnyRun) -> Iterator[tuple[str, Any]]:
    if config.env_name:
        yield config.env_name, plugins.environment(config.env_name).load("env")
    if config.algorithm_name:
        yield config.algorithm_name, plugins.algorithm(config.algorithm_name).load("algorithm")
    for kind, reference in _model_references(config.model.to_plain()):
        if ":" in reference or reference in plugins.registered(kind):
            yield reference, plugins.find(kind, reference)


def _model_references(values: Any) -> Iterator[tuple[str, str]]:
    """Names and addresses of encoders and convolutions in a model's config, wherever they stand."""
    if isinstance(values, dict):
        for name, value in values.items():
            if name in ("kind", "conv") and isinstance(value, str):
                yield ("encoder" if name == "kind" else "convolution"), value
            else:
                yield from _model_references(value)
