"""Lays the layers of a configuration over each other and checks the whole: all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgewise.config.layers import Layer, Path, Problem, merge, origin_of, reach, refuse
from edgewise.config.model import Config
from edgewise.config.overrides import Misfit, misfits
from edgewise.config.run import MISFIT, RunConfig
from edgewise.config.schema import annotation_at, config_type, kinds_of, member_of
from edgewise.config.wording import by_place, did_you_mean, refusal

ConfigT = TypeVar("ConfigT", bound=Config)


def resolve(schema: type[ConfigT], layers: Sequence[Layer]) -> ConfigT:
    """The config that the layers make together, later ones winning.

    Raises:
        ConfigError: with every problem of every layer, each naming its file and line, or its flag.
    """
    values = merge(layers, is_union=lambda path: len(kinds_of(annotation_at(schema, {}, path))) > 1)
    problems = [problem for layer in layers for problem in layer.problems]
    try:
        config = schema.from_plain(values)
    except ValidationError as error:
        problems += _problems(schema, values, layers=layers, error=error)
    if problems:
        raise refuse(problems)
    return config


def _problems(
    schema: type[Config], values: Mapping[str, Any], *, layers: Sequence[Layer], error: ValidationError
) -> Iterator[Problem]:
    found = by_place(error, values)
    unfit: list[Misfit] | None = None
    for path, lines in found.items():
        if lines[0]["type"] == MISFIT:
            unfit = lines[0]["ctx"]["misfits"]
        else:
            reason = _reason(path, lines, schema=schema, values=values)
            yield Problem(origin_of(layers, path), path, reason)
    for misfit in _misfits(schema, values) if unfit is None else unfit:
        if misfit.path not in found:
            yield Problem(origin_of(layers, misfit.path), misfit.path, misfit.reason)


def _misfits(schema: type[Config], values: Mapping[str, Any]) -> list[Misfit]:
    if not issubclass(schema, RunConfig):
        return []
    env = config_type(schema.model_fields["env"].annotation)
    algorithm = config_type(schema.model_fields["algorithm"].annotation)
    return misfits(values, env=env, algorithm=algorithm) if env and algorithm else []


def _reason(
    path: Path, lines: Sequence[ErrorDetails], *, schema: type[Config], values: Mapping[str, Any]
) -> str:
    """Why the value at `path` is refused, with the names that would do where a name is wrong."""
    kind = lines[0]["type"]
    if kind == "extra_forbidden":
        holder = member_of(annotation_at(schema, values, path[:-1]), reach(values, path[:-1]))
        return f"unknown field; {did_you_mean(str(path[-1]), list(holder.model_fields) if holder else [])}"
    if kind == "missing":
        return "is missing, and has no default"
    if kind == "union_tag_not_found":
        return f"needs a kind: {' or '.join(kinds_of(annotation_at(schema, values, path)))}"
    return refusal(lines)
