"""Configs of runs of edgewise 0.2: settings that are gone since then, and where others have moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from edgewise.config.layers import ABSENT, Path, dotted, value_at
from edgewise.config.model import Config
from edgewise.config.schema import member_of

ENCODER: Mapping[str, Any] = {
    "soft_cap": None,
    "beta": False,
    "norm": "layer",
    "dropout": 0.0,
    "compile": False,
}
"""Settings of encoders that are gone."""
REMOVED: Mapping[Path, Any] = {
    ("model", "sets"): "in_turn",
    ("model", "min_std"): 1e-3,
    ("algorithm", "normalise_advantage"): True,
    ("algorithm", "value_decay"): 0.99,
    ("algorithm", "average_decay"): 0.9,
    ("algorithm", "weight_decay"): 1e-4,
    ("algorithm", "two_player"): False,
    ("algorithm", "adam_epsilon"): 1e-5,
    ("model", "kge"): None,
    ("model", "initialise"): False,
    ("model", "fusion"): 0.0,
    ("model", "keep_best"): None,
    ("model", "shaping"): 0.0,
    ("env", "overflow_cost"): None,
    ("env", "service_deviation"): 1.0,
    ("env", "skip_unary"): False,
    ("env", "skip_limit"): 20,
    ("env", "use_domains"): True,
    ("env", "with_rules_only"): True,
    **{
        (*section, name): only
        for section in (("model", "encoder"), ("model", "graph"), ("model", "ego", "graph"))
        for name, only in ENCODER.items()
    },
}
"""Settings that are gone, with the only value left; that of a constant of the same name, if there is one."""


def upgrade(values: Mapping[str, Any], schema: type[Config]) -> tuple[dict[str, Any], list[str]]:
    """Return the config of a run as this version would have written it.

    Args:
        values: plain values, as they were written.
        schema: config class of the run.

    Returns:
        The values without removed settings, and a sentence for each that had another value than the one left.
    """
    upgraded: dict[str, Any] = deepcopy(dict(values))
    reasons = []
    if not upgraded.get("workers"):
        upgraded.pop("ray", None)
    for path, only in list(_removed(upgraded, schema)):
        found = value_at(upgraded, path[:-1]).pop(path[-1])
        if found != only:
            reasons.append(f"{dotted(path)} = {found!r} is no longer possible, only {only!r}")
    return upgraded, reasons


def _removed(values: Mapping[str, Any], schema: type[Config]) -> Iterator[tuple[Path, Any]]:
    """Yield the removed settings that some values have, and the schema has not."""
    for path, only in REMOVED.items():
        if value_at(values, path) is ABSENT:
            continue
        holder: Any = schema
        for depth, part in enumerate(path):
            member = member_of(holder, value_at(values, path[:depth]))
            if member is None or part not in member.model_fields:
                yield path, getattr(member, str(part), only)
                break
            holder = member.model_fields[str(part)].annotation
