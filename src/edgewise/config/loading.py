"""Lays the layers of a configuration over each other and checks the whole: all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgewise.config.layers import ABSENT, Layer, Path, Problem, merge, origin_of, reach, refuse, shown
from edgewise.config.model import Config
from edgewise.config.overrides import did_you_mean, misfits
from edgewise.config.run import MISFIT, RunConfig
from edgewise.config.schema import annotation_at, config_type, kinds_of, member_of

ConfigT = TypeVar("ConfigT", bound=Config)

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "names with values",
    "model_type": "names with values",
    "none_required": "none",
}


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
    by_path: dict[Path, list[ErrorDetails]] = {}
    for line in error.errors(include_url=False):
        if line["type"] != MISFIT:
            by_path.setdefault(_place(line, values), []).append(line)
    for path, lines in by_path.items():
        yield Problem(origin_of(layers, path), path, _reason(path, lines, schema=schema, values=values))
    if issubclass(schema, RunConfig):
        for misfit in _misfits(schema, values):
            if misfit.path not in by_path:
                reason = f"got {shown(misfit.got)}; {misfit.message}"
                yield Problem(origin_of(layers, misfit.path), misfit.path, reason)


def _misfits(schema: type[RunConfig[Any, Any, Any]], values: Mapping[str, Any]) -> list[Any]:
    env = config_type(schema.model_fields["env"].annotation)
    algorithm = config_type(schema.model_fields["algorithm"].annotation)
    return misfits(values, env=env, algorithm=algorithm) if env and algorithm else []


def _place(line: ErrorDetails, values: Mapping[str, Any]) -> Path:
    """Where the error stands in the values: its location without the labels of union members."""
    path: Path = ()
    for position, part in enumerate(line["loc"]):
        last = position == len(line["loc"]) - 1
        missing = last and line["type"] == "missing"
        if missing or reach(values, (*path, part)) is not ABSENT:
            path = (*path, part)
    return path


def _reason(
    path: Path, lines: Sequence[ErrorDetails], *, schema: type[Config], values: Mapping[str, Any]
) -> str:
    """What was got and what would do; the members of a union each say their part."""
    kind = lines[0]["type"]
    if kind == "extra_forbidden":
        holder = member_of(annotation_at(schema, values, path[:-1]), reach(values, path[:-1]))
        return f"unknown field; {did_you_mean(str(path[-1]), list(holder.model_fields) if holder else [])}"
    if kind == "missing":
        return "is missing, and has no default"
    if kind == "value_error":
        return lines[0]["msg"].removeprefix("Value error, ")
    if kind == "union_tag_not_found":
        return f"needs a kind: {' or '.join(kinds_of(annotation_at(schema, values, path)))}"
    wanted = dict.fromkeys(_wanted(line) for line in lines)
    return f"got {shown(lines[0]['input'])}, expected {' or '.join(wanted)}"


def _wanted(line: ErrorDetails) -> str:
    """What one member of a field's type asks for."""
    context = line.get("ctx", {})
    match line["type"]:
        case kind if kind in _EXPECTED:
            return _EXPECTED[kind]
        case "greater_than":
            return f"more than {context['gt']}"
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "less_than":
            return f"less than {context['lt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "literal_error":
            choices = context["expected"].replace("'", "")
            return f"one of {choices}" if " or " in choices else choices
        case "union_tag_invalid":
            return "a kind of " + context["expected_tags"].replace("'", "")
        case "string_pattern_mismatch":
            return f"text like {context['pattern']}"
        case "too_short":
            return f"at least {context['min_length']} of them"
    return line["msg"].removeprefix("Input should be ")
