"""Combinations of environment settings that are given as lists, such as `--num-agents 3,7,10`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

from edgewise.config.documents import parse_value
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer, Problem, config_error
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.schema import find, is_text

SEPARATOR = re.compile(r",(?![^\[{]*[\]}])")
"""A comma outside brackets: `[4,8],[8,16]` are two ranges."""


def combinations(config: Config, given: Sequence[tuple[str, str | None]]) -> list[dict[str, Any]]:
    """Return every combination of the given values, each validated against the environment's config.

    Args:
        config: config of the environment, for the other fields.
        given: names and comma-separated values, such as `("--env.num-agents", "3,7")`.

    Raises:
        ConfigError: lists every invalid value.
    """
    problems: list[Problem] = []
    values: dict[str, list[Any]] = {}
    origins: dict[str, str] = {}
    for flag, text in given:
        name = flag.removeprefix("--").removeprefix("env.")
        found = find(type(config), name)
        if isinstance(found, str):
            problems.append(Problem(flag, (), found))
        elif text is None:
            problems.append(Problem(flag, (), "has no value; give one, or several with commas"))
        else:
            path, annotation = found
            field, parts = str(path[0]), SEPARATOR.split(text)
            if field in values:
                problems.append(Problem(flag, path, f"is set twice, also by {origins[field]}; keep one"))
            values[field] = parts if is_text(annotation) else [parse_value(part) for part in parts]
            origins[field] = flag
    combined = [dict(zip(values, choice, strict=True)) for choice in product(*values.values())]
    for settings in combined:
        layer = Layer("settings", settings, {(name,): origins[name] for name in settings})
        try:
            resolve(type(config), [Layer("the run", config.to_plain()), layer])
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise config_error(problems)
    return combined


def given_settings(
    sets: Sequence[str], flags: Sequence[tuple[str, str | None]]
) -> list[tuple[str, str | None]]:
    """Return the settings from `--set NAME=VALUES` and from flags as pairs of name and values."""
    pairs: list[tuple[str, str | None]] = []
    for text in sets:
        name, equals, values = text.partition("=")
        if not name:
            raise ConfigError(f"--set: got {text}, expected FIELD=VALUE")
        pairs.append((name, values if equals else None))
    return [*pairs, *flags]
