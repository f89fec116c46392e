"""What a field would take, and what a name was meant to be, in the words of error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgewise.config.layers import ABSENT, Path, reach, shown

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
    """A clause that names the nearest of the known names, or all of them when none is near."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"it has {', '.join(sorted(known))}" if known else "it has no fields"


def expected(line: ErrorDetails) -> str:
    """What would do instead of a value that pydantic refused."""
    kind, context = line["type"], line.get("ctx", {})
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
    return line["msg"].removeprefix("Input should be ").removeprefix("Value error, ")


def refusal(lines: Sequence[ErrorDetails]) -> str:
    """What was got and what would do; the members of a union each say their part."""
    if lines[0]["type"] == "value_error":
        return lines[0]["msg"].removeprefix("Value error, ")
    wanted = dict.fromkeys(expected(line) for line in lines)
    return f"got {shown(lines[0]['input'])}, expected {' or '.join(wanted)}"


def by_place(error: ValidationError, values: Mapping[str, Any]) -> dict[Path, list[ErrorDetails]]:
    """What pydantic refused, by the place in the values where it stands."""
    places: dict[Path, list[ErrorDetails]] = {}
    for line in error.errors(include_url=False):
        places.setdefault(_place(line, values), []).append(line)
    return places


def _place(line: ErrorDetails, values: Mapping[str, Any]) -> Path:
    """Pydantic's location without the labels of union members, which no file contains."""
    path: Path = ()
    for position, part in enumerate(line["loc"]):
        missing = line["type"] == "missing" and position == len(line["loc"]) - 1
        if missing or reach(values, (*path, part)) is not ABSENT:
            path = (*path, part)
    return path
