"""Words for error messages: what a field accepts, and which name was probably meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgewise.config.layers import ABSENT, Path, format_value, value_at

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
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def did_you_mean(name: str, known: list[str]) -> str:
    """Return a phrase that suggests the most similar known name, or lists all of them."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"it has {', '.join(sorted(known))}" if known else "it has no fields"


def expected(error: ErrorDetails) -> str:
    """Return what pydantic expected in place of an invalid value."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return (
            f"{words} {context[bound]:g}"
            if isinstance(context[bound], float)
            else f"{words} {context[bound]}"
        )
    if kind == "literal_error":
        choices = context["expected"].replace("'", "")
        return f"one of {choices}" if " or " in choices else choices
    if kind == "union_tag_invalid":
        return "a kind of " + context["expected_tags"].replace("'", "")
    if kind in ("too_short", "too_long"):
        word, bound = ("at least", "min_length") if kind == "too_short" else ("at most", "max_length")
        return f"{word} {context[bound]} items, not {context['actual_length']}"
    if kind == "string_too_short":
        return "some text"
    return error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")


def describe_errors(errors: Sequence[ErrorDetails]) -> str:
    """Return what was given and what was expected; each member of a union has its own error."""
    if errors[0]["type"] == "value_error":
        return errors[0]["msg"].removeprefix("Value error, ")
    wanted = dict.fromkeys(expected(error) for error in errors)
    return f"got {format_value(errors[0]['input'])}, expected {' or '.join(wanted)}"


def errors_by_path(error: ValidationError, values: Mapping[str, Any]) -> dict[Path, list[ErrorDetails]]:
    """Group the errors of pydantic by their path in `values`."""
    grouped: dict[Path, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        grouped.setdefault(_path_of(details, values), []).append(details)
    return grouped


def _path_of(error: ErrorDetails, values: Mapping[str, Any]) -> Path:
    """Return pydantic's location without the labels of union members, which no file contains."""
    path: Path = ()
    for position, part in enumerate(error["loc"]):
        missing = error["type"] == "missing" and position == len(error["loc"]) - 1
        if missing or value_at(values, (*path, part)) is not ABSENT:
            path = (*path, part)
    return path
