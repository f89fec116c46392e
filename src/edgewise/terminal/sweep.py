"""Settings of an environment given as lists, and every combination of them: `--num-agents 3,7,10`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

from edgewise.config.documents import parse_value
from edgewise.config.errors import ConfigError
from edgewise.config.layers import Layer, Problem, refuse
from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.schema import find, takes_text_alone

BETWEEN = re.compile(r",(?![^\[{]*[\]}])")
"""Commas outside brackets: `[4,8],[8,16]` are two ranges."""


def combinations(config: Config, given: Sequence[tuple[str, str | None]]) -> list[dict[str, Any]]:
    """Every combination of the values given, each checked against the environment's config.

    Args:
        config: of the environment, whose other fields stay.
        given: names and comma-separated values, such as `("--env.num-agents", "3,7")`.

    Raises:
        ConfigError: naming every value that cannot be.
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
            field, parts = str(path[0]), BETWEEN.split(text)
            if field in values:
                problems.append(Problem(flag, path, f"is set twice, also by {origins[field]}; keep one"))
            values[field] = parts if takes_text_alone(annotation) else [parse_value(part) for part in parts]
            origins[field] = flag
    combined = [dict(zip(values, choice, strict=True)) for choice in product(*values.values())]
    for settings in combined:
        layer = Layer("settings", settings, {(name,): origins[name] for name in settings})
        try:
            resolve(type(config), [Layer("the run", config.to_plain()), layer])
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise refuse(problems)
    return combined


def given_settings(
    sets: Sequence[str], flags: Sequence[tuple[str, str | None]]
) -> list[tuple[str, str | None]]:
    """The settings of `--set name=values` and of flags that are settings themselves."""
    pairs: list[tuple[str, str | None]] = []
    for text in sets:
        name, equals, values = text.partition("=")
        if not name:
            raise ConfigError(f"--set: got {text}, expected FIELD=VALUE")
        pairs.append((name, values if equals else None))
    return [*pairs, *flags]
