"""Turns flags and keyword arguments into a layer of values, by dotted path or unambiguous short name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgewise.config.documents import parse_value
from edgewise.config.layers import Layer, Path, Problem
from edgewise.config.model import Config
from edgewise.config.schema import (
    find,
    kind_of,
    takes_list,
    takes_list_alone,
    takes_nothing,
    takes_text_alone,
    takes_truth,
)


def from_flags(schema: type[Config], flags: Sequence[tuple[str, str | None]]) -> Layer:
    """The layer that the flags of a command line make.

    Args:
        schema: what the flags are flags of.
        flags: pairs such as `("--env.num-agents", "7")`; None for a flag that stands alone and so means true.
    """
    layer = Layer("the command line")
    for flag, text in flags:
        found = find(schema, flag.removeprefix("--"))
        if isinstance(found, str):
            layer.problems.append(Problem(flag, (), found))
            continue
        path, annotation = found
        if text is None and not takes_truth(annotation):
            layer.problems.append(Problem(flag, path, f"has no value; give a {kind_of(annotation)}"))
            continue
        _put(layer, path, True if text is None else _value(text, annotation), origin=flag)
    return layer


def from_keywords(schema: type[Config], keywords: Mapping[str, Any]) -> Layer:
    """The layer that keyword arguments make; a mapping sets the fields below the name it is given for."""
    layer = Layer("the arguments")
    for name, value in keywords.items():
        found = find(schema, name)
        if isinstance(found, str):
            layer.problems.append(Problem(f"{name}=", (), found))
            continue
        _put(layer, found[0], _plain(value), origin=f"{name}=")
    return layer


def _value(text: str, annotation: Any) -> Any:
    """What is typed on a command line, as the field would have it in a file."""
    if text.lower() in ("none", "null") and takes_nothing(annotation):
        return None
    if takes_text_alone(annotation):
        return text
    if "," in text and takes_list(annotation) and not text.lstrip().startswith("["):
        return [parse_value(item) for item in text.split(",") if item]
    value = parse_value(text)
    return value if isinstance(value, list) or not takes_list_alone(annotation) else [value]


def _plain(value: Any) -> Any:
    """Values of Python and of its number libraries, as a file would hold them."""
    if isinstance(value, Config):
        return value.to_plain()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | int | float):
        return value.item()
    return value


def _put(layer: Layer, path: Path, value: Any, *, origin: str) -> None:
    """Sets a value at a path, making the mappings on the way."""
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
