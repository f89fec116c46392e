"""Merge the layers of a configuration, validate the result and report all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgewise.config.layers import Layer, Path, Problem, config_error, merge, origin_of, value_at
from edgewise.config.model import Config
from edgewise.config.overrides import OverrideProblem, override_problems
from edgewise.config.run import OVERRIDE_ERROR, RunConfig
from edgewise.config.schema import annotation_at, config_type, kinds_of, member_of, unused_settings
from edgewise.config.wording import describe_errors, did_you_mean, errors_by_path

ConfigT = TypeVar("ConfigT", bound=Config)


def resolve(schema: type[ConfigT], layers: Sequence[Layer]) -> ConfigT:
    """Merge layers into one validated config; later layers override earlier ones.

    Raises:
        ConfigError: lists every problem of every layer, with its file and line or its flag.
    """
    values = merge(
        layers,
        is_union=lambda path: len(kinds_of(annotation_at(schema, {}, path))) > 1,
        is_table=lambda path: get_origin(annotation_at(schema, {}, path)) is dict,
    )
    problems = [problem for layer in layers for problem in layer.problems]
    try:
        config = schema.from_plain(values)
        problems += _unused(config, layers)
    except ValidationError as error:
        problems += _problems(schema, values, layers=layers, error=error)
    if problems:
        raise config_error(problems)
    return config


def _unused(config: Config, layers: Sequence[Layer]) -> Iterator[Problem]:
    """Yield the settings that were given over the first layer, and have no effect."""
    for path, reason in unused_settings(config):
        if any(layer.sets(path) for layer in layers[1:]):
            yield Problem(origin_of(layers, path), path, f"would have no effect: it applies only if {reason}")


def _problems(
    schema: type[Config], values: Mapping[str, Any], *, layers: Sequence[Layer], error: ValidationError
) -> Iterator[Problem]:
    found = errors_by_path(error, values)
    overrides: list[OverrideProblem] | None = None
    for path, errors in found.items():
        if errors[0]["type"] == OVERRIDE_ERROR:
            overrides = errors[0]["ctx"]["problems"]
        else:
            reason = _reason(path, errors, schema=schema, values=values)
            yield Problem(origin_of(layers, path), path, reason)
    for problem in _override_problems(schema, values) if overrides is None else overrides:
        if problem.path not in found:
            yield Problem(origin_of(layers, problem.path), problem.path, problem.reason)


def _override_problems(schema: type[Config], values: Mapping[str, Any]) -> list[OverrideProblem]:
    if not issubclass(schema, RunConfig):
        return []
    env = config_type(schema.model_fields["env"].annotation)
    algorithm = config_type(schema.model_fields["algorithm"].annotation)
    return override_problems(values, env=env, algorithm=algorithm) if env and algorithm else []


def _reason(
    path: Path, errors: Sequence[ErrorDetails], *, schema: type[Config], values: Mapping[str, Any]
) -> str:
    """Return why the value at `path` is invalid; for a wrong name, with the names that are valid."""
    kind = errors[0]["type"]
    if kind == "extra_forbidden":
        holder = member_of(annotation_at(schema, values, path[:-1]), value_at(values, path[:-1]))
        return f"unknown field; {did_you_mean(str(path[-1]), list(holder.model_fields) if holder else [])}"
    if kind == "missing":
        return "is missing, and has no default"
    if kind == "union_tag_not_found":
        return f"needs a kind: {' or '.join(kinds_of(annotation_at(schema, values, path)))}"
    return describe_errors(errors)
