"""Read a benchmark file: algorithms, environments, seeds, and settings of each.

name: small
seeds: 5
settings: {total_frames: 100000}
algorithms: [ppo, reinforce]
environments:
  small-walk: {environment: walk, settings: {num_nodes: 8}, range: [-40, -4]}
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise import plugins
from edgewise.config.documents import read
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer, Problem, config_error
from edgewise.config.run import AnyRun
from edgewise.config.wording import did_you_mean

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]*([-][A-Za-z0-9._]+)*")
FIELDS = ("name", "seeds", "settings", "algorithms", "environments")
ENTRY_FIELDS = {"algorithms": ("algorithm", "settings"), "environments": ("environment", "settings", "range")}


@dataclass(frozen=True)
class Entry:
    """An algorithm or an environment of a grid.

    Args:
        name: in tables and folders.
        reference: name or address of the algorithm or environment.
        settings: flags of its runs.
        range: of an environment, the values that count as 0 and as 1; None for those of its runs.
    """

    name: str
    reference: str
    settings: tuple[tuple[str, str], ...] = ()
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Grid:
    """The content of a benchmark file."""

    name: str
    seeds: int
    settings: tuple[tuple[str, str], ...]
    algorithms: tuple[Entry, ...]
    environments: tuple[Entry, ...]

    def flags(self, algorithm: Entry, environment: Entry) -> list[tuple[str, str]]:
        """Return the flags of a cell; those of the algorithm replace those of the environment."""
        flags = dict(self.settings) | dict(environment.settings) | dict(algorithm.settings)
        return list(flags.items())


def read_grid(file: Path) -> Grid:
    """Read a benchmark file.

    Raises:
        ConfigError: lists every problem with its line.
    """
    layer = read(file)
    values, problems = layer.values, layer.problems
    for field in values:
        if field not in FIELDS:
            problems.append(_problem(layer, (field,), f"unknown field; {did_you_mean(field, list(FIELDS))}"))
    name, seeds = values.get("name", file.stem), values.get("seeds", 1)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problems.append(_problem(layer, ("name",), "expected letters, digits, dots, dashes and underscores"))
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        problems.append(_problem(layer, ("seeds",), f"got {seeds!r}, expected a whole number from 1"))
    settings = _settings(layer, ("settings",), values.get("settings", {}))
    algorithms = _entries(layer, "algorithms")
    environments = _entries(layer, "environments")
    if problems:
        raise config_error(problems)
    return Grid(str(name), seeds, settings, algorithms, environments)


def load_cells(
    grid: Grid, load: Callable[[str, str, list[tuple[str, str]]], AnyRun]
) -> dict[tuple[str, str], AnyRun]:
    """Return the config of every algorithm in every environment, before anything runs.

    Args:
        grid: to load.
        load: returns the config of an environment, an algorithm and flags, or raises ConfigError.

    Raises:
        ConfigError: lists the problems of every cell.
    """
    cells, problems = {}, list[Problem]()
    for environment in grid.environments:
        for algorithm in grid.algorithms:
            flags = grid.flags(algorithm, environment)
            try:
                # Settings become flags of a child, where an address would count as typed by the user.
                plugins.require_allowed([f"{name}={value}" for name, value in flags])
                config = load(environment.reference, algorithm.reference, flags)
            except ConfigError as error:
                where = f"{algorithm.name} in {environment.name}"
                found = error.problems or [Problem("", (), f"{error.message}; {error.hint or ''}")]
                problems += [
                    Problem(f"{where}: {one.origin}".rstrip(": "), one.path, one.reason) for one in found
                ]
                continue
            cells[algorithm.name, environment.name] = config
    if problems:
        raise config_error(problems)
    return cells


def _entries(layer: Layer, field: str) -> tuple[Entry, ...]:
    """Return the entries of a list of names, or of a mapping from names to their settings."""
    given = layer.values.get(field)
    if isinstance(given, list):
        given = {each if isinstance(each, str) else json.dumps(each): {} for each in given}
    if not isinstance(given, Mapping) or not given:
        layer.problems.append(
            _problem(layer, (field,), f"expected a list of {field}, or names with settings")
        )
        return ()
    return tuple(_entry(layer, field, name, content) for name, content in given.items())


def _entry(layer: Layer, field: str, name: str, content: Any) -> Entry:
    path, single = (field, name), field.removesuffix("s")
    content = {} if content is None else content
    if not isinstance(content, Mapping):
        layer.problems.append(_problem(layer, path, "expected names with values"))
        return Entry(name, name)
    known = ENTRY_FIELDS[field]
    for key in content:
        if key not in known:
            layer.problems.append(
                _problem(layer, (*path, key), f"unknown field; {did_you_mean(key, list(known))}")
            )
    reference = content.get(single, name)
    label = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") if reference == name else name
    if not NAME.fullmatch(label) or not isinstance(reference, str):
        layer.problems.append(_problem(layer, path, "expected a name of letters, digits, dots and dashes"))
    settings = _settings(layer, (*path, "settings"), content.get("settings", {}))
    return Entry(label, str(reference), settings, _range(layer, (*path, "range"), content.get("range")))


def _settings(layer: Layer, path: tuple[str, ...], given: Any) -> tuple[tuple[str, str], ...]:
    """Return settings as flags, so that a run is told what a user would type."""
    if not isinstance(given, Mapping):
        layer.problems.append(_problem(layer, path, "expected names with values"))
        return ()
    return tuple(
        (f"--{name.removeprefix('--')}", value if isinstance(value, str) else json.dumps(value))
        for name, value in _flat(given)
    )


def _flat(given: Mapping[str, Any], within: str = "") -> list[tuple[str, Any]]:
    """Return nested settings with dotted names."""
    found = []
    for name, value in given.items():
        dotted = f"{within}.{name}" if within else str(name)
        found += _flat(value, dotted) if isinstance(value, Mapping) and value else [(dotted, value)]
    return found


def _range(layer: Layer, path: tuple[str, ...], given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    numbers = given if isinstance(given, list) else []
    is_valid = len(numbers) == 2 and all(
        isinstance(each, int | float) and not isinstance(each, bool) and math.isfinite(each)
        for each in numbers
    )
    if not is_valid or numbers[0] == numbers[1]:
        reason = "expected two different numbers: what counts as 0 and what counts as 1"
        layer.problems.append(_problem(layer, path, reason))
        return None
    return float(numbers[0]), float(numbers[1])


def _problem(layer: Layer, path: tuple[str, ...], reason: str) -> Problem:
    return Problem(layer.origin(path), path, reason)
