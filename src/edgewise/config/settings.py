"""Convert flags and keyword arguments, named by dotted path or short name, into a layer of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgewise.config.documents import parse_value
from edgewise.config.layers import Layer, Path, Problem
from edgewise.config.model import Config
from edgewise.config.schema import (
    allows_bool,
    allows_list,
    allows_none,
    find,
    is_list,
    is_text,
    type_in_words,
)


def from_flags(schema: type[Config], flags: Sequence[tuple[str, str | None]]) -> Layer:
    """Convert flags of a command line to a layer.

    Args:
        schema: the config class whose fields the flags set.
        flags: pairs such as `("--env.num-agents", "7")`; the value is None for a flag without one, which
            means true.
    """
    layer = Layer("the command line")
    for flag, text in flags:
        found = find(schema, flag.removeprefix("--"))
        if isinstance(found, str):
            layer.problems.append(Problem(flag, (), found))
            continue
        path, annotation = found
        if text is None and not allows_bool(annotation):
            layer.problems.append(Problem(flag, path, f"has no value; give a {type_in_words(annotation)}"))
            continue
        _set(layer, path, True if text is None else _parse(text, annotation), origin=flag)
    return layer


def from_keywords(schema: type[Config], keywords: Mapping[str, Any]) -> Layer:
    """Convert keyword arguments to a layer; a mapping sets the fields below its name."""
    layer = Layer("the arguments")
    for name, value in keywords.items():
        found = find(schema, name)
        if isinstance(found, str):
            layer.problems.append(Problem(f"{name}=", (), found))
            continue
        _set(layer, found[0], _plain(value), origin=f"{name}=")
    return layer


def _parse(text: str, annotation: Any) -> Any:
    """Parse the text of a flag into the value that a file would contain."""
    if text.lower() in ("none", "null") and allows_none(annotation):
        return None
    if is_text(annotation):
        return text
    if "," in text and allows_list(annotation) and not text.lstrip().startswith("["):
        return [parse_value(item) for item in text.split(",") if item]
    value = parse_value(text)
    return value if isinstance(value, list) or not is_list(annotation) else [value]


def _plain(value: Any) -> Any:
    """Convert values of Python and numpy to plain JSON types."""
    if isinstance(value, Config):
        return value.to_plain()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | int | float):
        return value.item()
    return value


def _set(layer: Layer, path: Path, value: Any, *, origin: str) -> None:
    """Set a value at a path; create the mappings above it."""
    if path in layer.origins:
        layer.problems.append(Problem(origin, path, f"is set twice, also by {layer.origins[path]}; keep one"))
        return
    place = layer.values
    for part in path[:-1]:
        if not isinstance(place.setdefault(str(part), {}), dict):
            layer.problems.append(Problem(origin, path, f"{part} is set as a whole too; keep one of the two"))
            return
        place = place[str(part)]
    last = str(path[-1])
    both = isinstance(value, dict) and isinstance(place.get(last), dict)
    place[last] = {**place[last], **value} if both else value
    layer.origins[path] = origin
