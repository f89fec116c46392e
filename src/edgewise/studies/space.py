"""The search space of a sweep: settings with ranges or choices, as typed after `--set`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from edgewise.config.errors import ConfigError
from edgewise.config.layers import Problem, config_error, dotted
from edgewise.config.model import Config
from edgewise.config.schema import find
from edgewise.terminal.sweep import SEPARATOR

Value = float | int | str
Scale = Literal["float", "log", "int", "logint"]
FORMS = "log:LOW,HIGH, float:LOW,HIGH, int:LOW,HIGH, logint:LOW,HIGH or choice:A,B,…"


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; the scale says whether they are whole and logarithmic."""

    scale: Scale
    low: float
    high: float

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return self.scale in ("int", "logint")

    @property
    def is_log(self) -> bool:
        """Whether the logarithm is uniform."""
        return self.scale in ("log", "logint")

    @property
    def extremes(self) -> tuple[Value, ...]:
        """The values that a config must accept for it to accept all."""
        return (int(self.low), int(self.high)) if self.is_whole else (self.low, self.high)

    def __contains__(self, value: object) -> bool:
        """Return whether a value is a number of the range."""
        if isinstance(value, bool) or not isinstance(value, int if self.is_whole else (int, float)):
            return False
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.scale}:{self.extremes[0]!r},{self.extremes[1]!r}"


@dataclass(frozen=True)
class Choice:
    """One of several values, as typed."""

    options: tuple[str, ...]

    @property
    def extremes(self) -> tuple[Value, ...]:
        """All options."""
        return self.options

    def __contains__(self, value: object) -> bool:
        """Return whether a value is one of the options."""
        return value in self.options

    def __str__(self) -> str:
        return f"choice:{','.join(self.options)}"


Dimension = Range | Choice
Space = Mapping[str, Dimension]
"""Dotted path of a setting to its values."""


def parse_space(schema: type[Config], texts: Sequence[str]) -> dict[str, Dimension]:
    """Parse `NAME=FORM:VALUES`, where NAME is a setting as in `edgewise train`.

    Raises:
        ConfigError: lists every invalid entry.

    Example:
        >>> parse_dimension("log:1e-4,1e-2")
        Range(scale='log', low=0.0001, high=0.01)
    """
    problems: list[Problem] = []
    space: dict[str, Dimension] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        found = find(schema, name.removeprefix("--"))
        if not equals:
            problems.append(Problem(f"--set {text}", (), f"expected NAME={FORMS}"))
        elif isinstance(found, str):
            problems.append(Problem(f"--set {name}", (), found))
        elif (key := dotted(found[0])) in space:
            problems.append(Problem(f"--set {name}", (), "is given twice; keep one"))
        else:
            try:
                space[key] = parse_dimension(values)
            except ValueError as error:
                problems.append(Problem(f"--set {name}", (), str(error)))
    if problems:
        raise config_error(problems)
    if not space:
        raise ConfigError("a sweep needs a setting to vary", hint=f"give --set NAME={FORMS}")
    return space


def parse_dimension(text: str) -> Dimension:
    """Parse `FORM:VALUES`.

    Raises:
        ValueError: with what is expected.
    """
    form, _, rest = text.partition(":")
    parts = tuple(part for part in SEPARATOR.split(rest) if part)
    if form == "choice":
        if len(set(parts)) != len(parts) or len(parts) < 2:
            raise ValueError(f"got {text}, expected two or more different choices")
        return Choice(parts)
    if form not in ("float", "log", "int", "logint"):
        raise ValueError(f"got {text}, expected {FORMS}")
    try:
        low, high = (float(part) for part in parts)
    except ValueError as error:
        raise ValueError(f"got {text}, expected two numbers: {form}:LOW,HIGH") from error
    whole = form in ("int", "logint")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"got {text}, expected finite numbers with LOW below HIGH")
    if whole and not (low.is_integer() and high.is_integer()):
        raise ValueError(f"got {text}, expected whole numbers")
    if form in ("log", "logint") and low <= 0:
        raise ValueError(f"got {text}, expected LOW above 0 for a logarithmic range")
    return Range(form, low, high)  # type: ignore[arg-type]  # one of the four, as tested above


def contains(space: Space, params: Mapping[str, Value]) -> bool:
    """Return whether the values are of this space: all its settings, no others, and each in its range.

    Example:
        >>> contains({"epochs": Range("int", 1, 8)}, {"epochs": 9})
        False
    """
    return space.keys() == params.keys() and all(params[name] in space[name] for name in space)


def as_flags(params: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Return values as flags of a command line, numbers without loss of precision.

    Example:
        >>> as_flags({"algorithm.learning_rate": 0.001, "model.encoder.kind": "gnn"})
        [('--algorithm.learning_rate', '0.001'), ('--model.encoder.kind', 'gnn')]
    """
    return [(f"--{name}", value if isinstance(value, str) else repr(value)) for name, value in params.items()]


def describe(space: Space) -> dict[str, Any]:
    """Return the space as plain text by name, for a plan."""
    return {name: str(dimension) for name, dimension in space.items()}
