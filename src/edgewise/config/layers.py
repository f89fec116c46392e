"""Layers of config values with their origins, and problems that name the origin of a value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgewise.config.errors import ConfigError

Path = tuple[str | int, ...]
"""Path of a value from the root: names of fields and indices of lists."""


@dataclass(frozen=True)
class Problem:
    """One error of a configuration: where the value came from, its path and the reason."""

    origin: str
    path: Path
    reason: str

    def __str__(self) -> str:
        where = dotted(self.path)
        named = where if where and where != flag_path(self.origin) else ""
        return ": ".join(part for part in (self.origin, named, self.reason) if part)


@dataclass
class Layer:
    """Values from one source, such as a file or the command line.

    Args:
        name: name of the source for errors: the path of a file, "the command line".
        values: nested plain values.
        origins: a more exact name for some paths: a line of the file, a flag.
        problems: errors found while the source was read.
    """

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def origin(self, path: Path) -> str:
        """Return the most exact name of the place that set `path` or the nearest path above it."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, self.name)

    def sets(self, path: Path) -> bool:
        """Return whether this layer has a value at `path`."""
        return value_at(self.values, path) is not ABSENT


ABSENT = object()
"""Marks a missing value, since None is a value."""


def value_at(values: Any, path: Path) -> Any:
    """Return the value at `path`, or `ABSENT`."""
    for part in path:
        in_mapping = isinstance(values, Mapping) and part in values
        in_list = isinstance(values, list | tuple) and isinstance(part, int) and part < len(values)
        if not (in_mapping or in_list):
            return ABSENT
        values = values[part]
    return values


def merge(
    layers: Sequence[Layer],
    *,
    is_union: Callable[[Path], bool],
    is_table: Callable[[Path], bool] = lambda _: False,
) -> dict[str, Any]:
    """Merge the values of all layers field by field; later layers override earlier ones.

    A list replaces the list below it. So does a mapping with another `kind`, at paths where `is_union` is
    true: there every kind has its own fields. An empty mapping clears the one below it where `is_table` is
    true, as in `schedules: {}`; a section of fields it leaves unchanged.
    """

    def over(base: Mapping[str, Any], top: Mapping[str, Any], path: Path) -> dict[str, Any]:
        if "kind" in top and top["kind"] != base.get("kind") and is_union(path):
            return dict(top)
        merged = dict(base)
        for key, value in top.items():
            below, place = merged.get(key), (*path, key)
            if isinstance(value, Mapping) and isinstance(below, Mapping):
                value = {} if not value and is_table(place) else over(below, value, place)
            merged[key] = value
        return merged

    merged: dict[str, Any] = {}
    for layer in layers:
        merged = over(merged, layer.values, ())
    return merged


def origin_of(layers: Sequence[Layer], path: Path) -> str:
    """Return the name of the place that set `path`: the last layer with a value there, or above it."""
    for length in range(len(path), -1, -1):
        for layer in reversed(layers):
            if layer.sets(path[:length]) and (length or layer.values):
                return layer.origin(path)
    return layers[-1].name if layers else ""


def dotted(path: Path) -> str:
    """Format a path with dots, such as `training.curriculum.0.env`."""
    return ".".join(str(part) for part in path)


def flag_path(origin: str) -> str:
    """Return the dotted path that a flag contains, such as `env.num_agents` for `--env.num-agents`."""
    return origin.removeprefix("--").replace("-", "_")


def format_value(value: Any) -> str:
    """Format a value for an error message: as JSON, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def config_error(problems: Sequence[Problem]) -> ConfigError:
    """Build the error that lists every problem on its own line."""
    unique = list(dict.fromkeys(problems))
    if len(unique) == 1:
        return ConfigError(str(unique[0]), problems=unique)
    lines = "\n".join(f"  {problem}" for problem in unique)
    return ConfigError(f"{len(unique)} problems in the configuration:\n{lines}", problems=unique)
