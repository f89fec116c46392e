"""Environments, algorithms, recipes and other extensions: all that there are, and one by its name."""

from __future__ import annotations

from typing import Any

from edgewise.plugins.addresses import load
from edgewise.plugins.declarations import AlgorithmEntry, Environment
from edgewise.plugins.finding import find
from edgewise.plugins.installed import entry_points
from edgewise.plugins.kinds import KINDS
from edgewise.plugins.registry import declared, summary_of


def listed(kind_name: str) -> dict[str, Any]:
    """Return all of a kind that can be chosen by name: of the core, declared, registered, and installed."""
    kind = KINDS[kind_name]
    points = {
        point.name: kind.declare(point, summary=f"of the package {point.package}")
        for point in entry_points(kind.group)
    }
    built_in: dict[str, Any] = dict(load(kind.built_in)) if kind.built_in else {}
    return {**points, **declared(kind_name), **built_in}


def environments() -> dict[str, Environment]:
    """Return every environment that can be chosen by name."""
    return listed("environment")


def environment(reference: str) -> Environment:
    """Return the declaration of an environment, by its name or its address.

    Raises:
        ConfigError: there is none, or its code may not be imported.
    """
    found = find("environment", reference)
    entry: Environment = KINDS["environment"].declare(found, summary=summary_of(found))
    return entry


def algorithms() -> dict[str, AlgorithmEntry]:
    """Return every algorithm that can be chosen by name."""
    return listed("algorithm")


def algorithm(reference: str) -> AlgorithmEntry:
    """Return the declaration of an algorithm, by its name or its address.

    Raises:
        ConfigError: there is none, or its code may not be imported.
    """
    found = find("algorithm", reference)
    entry: AlgorithmEntry = KINDS["algorithm"].declare(found, summary=summary_of(found))
    return entry


def recipes() -> dict[str, Any]:
    """Return every recipe that can be chosen by name, or its address."""
    return listed("recipe")
