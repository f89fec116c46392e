"""Records which code of the user's a run was trained with, and finds out whether it has changed since."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewise import plugins
from edgewise.config import files
from edgewise.config.errors import CheckpointError
from edgewise.config.model import Config
from edgewise.config.run import AnyRun
from edgewise.models.config import BUILT_IN_ENCODERS, EncoderConfig
from edgewise.plugins import CodeRecord
from edgewise.runs import durable

CODE = "code.json"

log = logging.getLogger(__name__)


def records_of(config: AnyRun) -> list[CodeRecord]:
    """Return the records of a config's environment, algorithm and other extensions; ours are left out."""
    return plugins.record_code(dict(_extensions(config)))


def write_code(config: AnyRun, folder: Path) -> None:
    """Write the records of a new run; no file where it uses no code but ours."""
    records = [record.to_plain() for record in records_of(config)]
    if records:
        durable.replace_whole(folder / CODE, _as_json(records))


def command(verb: str, target: Path, *words: str, run: Path) -> str:
    """Return a command that can be pasted: with the whole path, and `--plugin` for code of the user's.

    Args:
        verb: of edgewise.
        target: what it is about: a run folder, or a config file.
        words: that follow.
        run: folder of the run that recorded the code.
    """
    places = []
    for record in _read(run) or ():
        address = plugins.Address.parse(str(record.get("address")))
        places.append(str(record.get("file")) if address is None else address.place)
    plugged = [word for place in dict.fromkeys(places) for word in ("--plugin", place)]
    return shlex.join(["edgewise", verb, str(target), *words, *plugged])


def accept_code(config: AnyRun, folder: Path) -> None:
    """Record the code with which a run goes on; what was recorded before is kept under `earlier`."""
    if code_changes(config, folder):
        before = _read(folder)
        records = [record.to_plain() for record in records_of(config)]
        for record in records:
            record["earlier"] = [each for each in before or () if each.get("address") == record["address"]]
        durable.replace_whole(folder / CODE, _as_json(records))


def code_changes(config: AnyRun, folder: Path) -> list[str]:
    """Return, in words, how the code of a run differs from what it was trained with."""
    current = records_of(config)
    if not (folder / CODE).exists() and not current:
        return []
    recorded = _read(folder)
    if recorded is None:
        return [f"{folder / CODE} cannot be read, so it is unknown which code the run was trained with"]
    return plugins.changed_code(recorded, current)


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


def named_code(model: Any) -> Iterator[tuple[str, str]]:
    """Return kind and reference of every extension that a model's config names; ours are left out."""
    head = getattr(model, "head", "auto")
    if head != "auto":
        yield "head", head
    for encoder in _encoders(model):
        if encoder.kind not in BUILT_IN_ENCODERS:
            yield "encoder", encoder.kind
        if encoder.conv in plugins.listed("convolution") or plugins.Address.parse(encoder.conv) is not None:
            yield "convolution", encoder.conv


def _encoders(values: Any) -> Iterator[EncoderConfig]:
    """Return the encoders in a model's config, wherever they stand."""
    if isinstance(values, EncoderConfig):
        yield values
    elif isinstance(values, Config):
        for name in type(values).model_fields:
            yield from _encoders(getattr(values, name))


def _extensions(config: AnyRun) -> Iterator[tuple[str, Any]]:
    """Return the extensions that a config names, by their name or address."""
    if config.env_name:
        yield config.env_name, plugins.environment(config.env_name).load("env")
    if config.algorithm_name:
        yield config.algorithm_name, plugins.algorithm(config.algorithm_name).load("algorithm")
    for kind, reference in named_code(config.model):
        yield reference, plugins.find(kind, reference)


def _read(folder: Path) -> list[dict[str, Any]] | None:
    """Return what was recorded; None if that cannot be read."""
    try:
        recorded = files.read_json(folder / CODE)
    except (OSError, ValueError):
        return None
    is_list = isinstance(recorded, list) and all(isinstance(each, dict) for each in recorded)
    return recorded if is_list else None


def _as_json(records: list[dict[str, Any]]) -> bytes:
    return (json.dumps(records, indent=2) + "\n").encode()
