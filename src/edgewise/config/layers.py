"""Where each value of a configuration came from: layers that know their origin, and problems that name it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from edgewise.config.errors import ConfigError

Path = tuple[str | int, ...]
"""The way to a value from the root: names of fields and positions in lists."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a configuration, in words that stand alone."""

    origin: str
    path: Path
    reason: str

    def __str__(self) -> str:
        where = dotted(self.path)
        named = where if where and where != flag_path(self.origin) else ""
        return ": ".join(part for part in (self.origin, named, self.reason) if part)


@dataclass
class Layer:
    """Values from one source.

    Args:
        name: the source, as an error names it: a file's path, "the command line".
        values: nested plain values.
        origins: for some paths a closer name: a line of the file, a flag.
        problems: what could not be read at all.
    """

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def origin(self, path: Path) -> str:
        """The closest name for the place that set `path`, or one above it."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, self.name)

    def sets(self, path: Path) -> bool:
        """Whether this layer says anything at `path`."""
        return reach(self.values, path) is not ABSENT


@dataclass(frozen=True)
class PlannedRun:
    """One run that a config file of another layout asks for.

    Args:
        layer: the settings of the run; `recipe` names what they change.
        folder: the folder in which the run folder is created.
    """

    layer: Layer
    folder: FilePath


ABSENT = object()
"""What stands where nothing was said; nothing else is identical to it."""


def reach(values: Any, path: Path) -> Any:
    """The value at `path`, or `ABSENT`."""
    for part in path:
        in_mapping = isinstance(values, Mapping) and part in values
        in_list = isinstance(values, list | tuple) and isinstance(part, int) and part < len(values)
        if not (in_mapping or in_list):
            return ABSENT
        values = values[part]
    return values


def merge(layers: Sequence[Layer], *, is_union: Callable[[Path], bool]) -> dict[str, Any]:
    """The values of all layers, later ones winning field by field.

    Lists are replaced whole. So is a mapping whose `kind` changes where `is_union` says that every kind has
    fields of its own.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _over(merged, layer.values, path=(), is_union=is_union)
    return merged


def _over(
    base: Mapping[str, Any], top: Mapping[str, Any], *, path: Path, is_union: Callable[[Path], bool]
) -> dict[str, Any]:
    if "kind" in top and top["kind"] != base.get("kind") and is_union(path):
        return dict(top)
    merged = dict(base)
    for key, value in top.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            value = _over(below, value, path=(*path, key), is_union=is_union)
        merged[key] = value
    return merged


def origin_of(layers: Sequence[Layer], path: Path) -> str:
    """The place that set `path`: the last layer that says it, or says what it should stand in."""
    for length in range(len(path), -1, -1):
        for layer in reversed(layers):
            if layer.sets(path[:length]) and (length or layer.values):
                return layer.origin(path)
    return layers[-1].name if layers else ""


def dotted(path: Path) -> str:
    """The path as people write it, `training.curriculum.0.env`."""
    return ".".join(str(part) for part in path)


def flag_path(origin: str) -> str:
    """The dotted path that an origin spells already, such as `env.num_agents` for `--env.num-agents`."""
    return origin.removeprefix("--").replace("-", "_")


def shown(value: Any) -> str:
    """A value as an error quotes it: JSON, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse(problems: Sequence[Problem]) -> ConfigError:
    """The error that lists every problem on its own line."""
    unique = list(dict.fromkeys(problems))
    if len(unique) == 1:
        return ConfigError(str(unique[0]), problems=unique)
    lines = "\n".join(f"  {problem}" for problem in unique)
    return ConfigError(f"{len(unique)} problems in the configuration:\n{lines}", problems=unique)
