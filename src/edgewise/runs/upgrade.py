"""Read the configs of runs of the version before: classes say which of their settings are gone."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from edgewise.config.layers import Path, dotted
from edgewise.config.model import Config
from edgewise.config.schema import member_of


def upgrade(values: Mapping[str, Any], schema: type[Config]) -> tuple[dict[str, Any], list[str]]:
    """Return the config of a run as this version would have written it.

    Args:
        values: plain values, as they were written.
        schema: config class of the run.

    Returns:
        The values without removed settings, and a sentence for each that had another value than the one left.
    """
    upgraded: dict[str, Any] = deepcopy(dict(values))
    if not upgraded.get("workers"):
        upgraded.pop("ray", None)
    return upgraded, _without_removed(upgraded, schema, ())


def _without_removed(values: dict[str, Any], schema: type[Config], path: Path) -> list[str]:
    """Drop what is gone from a section and those in it; return a sentence for each other value."""
    reasons = []
    for name, only in _removed(schema).items():
        if name not in schema.model_fields and name in values:
            found = values.pop(name)
            if found != only:
                reasons.append(f"{dotted((*path, name))} = {found!r} is no longer possible, only {only!r}")
    for name, value in values.items():
        if isinstance(value, dict) and name in schema.model_fields:
            inner = member_of(schema.model_fields[name].annotation, value)
            reasons += [] if inner is None else _without_removed(value, inner, (*path, name))
    return reasons


def _removed(schema: type[Config]) -> dict[str, Any]:
    """Return the removed settings of a class and of those that it extends."""
    owners = [owner for owner in reversed(schema.__mro__) if issubclass(owner, Config)]
    return {name: only for owner in owners for name, only in owner.removed.items()}
