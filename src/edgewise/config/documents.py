"""Read YAML and JSON files into layers of values with line numbers, by the rules of YAML 1.2."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

import yaml

from edgewise.config import files
from edgewise.config.layers import Layer, Path, Problem

MAX_VALUES = 100_000
"""Limit on the values of one file, to stop aliases that expand without end."""

_INTEGER = re.compile(r"^[-+]?[0-9][0-9_]*$")
_FLOAT = re.compile(r"^[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?$")
_NOT_FINITE = {
    ".nan": "nan",
    ".inf": "inf",
    "+.inf": "inf",
    "-.inf": "-inf",
    "nan": "nan",
    "inf": "inf",
    "-inf": "-inf",
}
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


class MalformedError(Exception):
    """A document that cannot be read, with its line if it is known."""

    def __init__(self, reason: str, line: int | None = None, path: Path = ()) -> None:
        super().__init__(reason)
        self.reason, self.line, self.path = reason, line, path


def read(file: FilePath) -> Layer:
    """Read a YAML or JSON file, by its suffix; errors go to the `problems` of the layer."""
    layer = Layer(str(file))
    try:
        text = _read_text(file)
        values = _parse_json(text, layer) if file.suffix == ".json" else _compose(text, layer)
    except MalformedError as error:
        origin = layer.name if error.line is None else at_line(layer.name, error.line)
        layer.problems.append(Problem(origin, error.path, error.reason))
        return layer
    if isinstance(values, dict):
        layer.values = values
    elif values is not None:
        layer.problems.append(
            Problem(layer.name, (), "expected names with values at the top level, got something else")
        )
    return layer


def at_line(file: str, line: int) -> str:
    """Return the name of a line of a file, for errors."""
    return f"{file}, line {line}"


def parse_value(text: str) -> Any:
    """Parse the text of one YAML value: a number, a boolean, a list, or the text itself.

    Example:
        >>> parse_value("1e-3"), parse_value("[3, 7]"), parse_value("no")
        (0.001, [3, 7], 'no')
    """
    if not text.lstrip().startswith(("[", "{", '"', "'")):
        return _scalar(text.strip())
    scratch = Layer("")
    try:
        value = _compose(text, scratch)
    except MalformedError:
        return text
    return text if scratch.problems else value


def _read_text(file: FilePath) -> str:
    try:
        return files.read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedError(f"is not UTF-8 text (byte {error.start})") from error
    except IsADirectoryError as error:
        raise MalformedError("is a folder; expected a YAML or JSON file") from error
    except OSError as error:
        raise MalformedError(f"cannot be read: {error.strerror or error}") from error


def _parse_json(text: str, layer: Layer) -> Any:
    """Parse a JSON document; a second pass as YAML finds line numbers and repeated names."""
    try:
        values = json.loads(text)  # the schema names the field of a number that is not finite
        files.check_depth(values)
    except json.JSONDecodeError as error:
        raise MalformedError(f"is not JSON: {error.msg} (column {error.colno})", error.lineno) from error
    except RecursionError as error:
        raise MalformedError("is nested too deeply") from error
    except ValueError as error:
        raise MalformedError(f"is not accepted: {error}") from error
    with suppress(MalformedError):
        _compose(text.replace("\t", " "), layer)
    return values


def _compose(text: str, layer: Layer) -> Any:
    """Parse a YAML document; repeated names go to the layer's problems, lines to its origins."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise MalformedError(f"is not YAML: {reason}", mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise MalformedError(f"is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise MalformedError("is nested too deeply") from error
    if root is None:
        return None
    budget = iter(range(MAX_VALUES))
    return _construct(root, (), layer=layer, budget=budget)


def _construct(node: yaml.Node, path: Path, *, layer: Layer, budget: Iterator[int]) -> Any:
    """Return the value of a node by the core schema of YAML 1.2."""
    line = node.start_mark.line + 1
    if next(budget, None) is None or len(path) > 50:
        raise MalformedError("has too many values, or an alias that contains itself", line)
    if layer.name:
        layer.origins.setdefault(path, at_line(layer.name, line))
    if isinstance(node, yaml.SequenceNode):
        return [
            _construct(item, (*path, index), layer=layer, budget=budget)
            for index, item in enumerate(node.value)
        ]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, layer=layer, budget=budget)
    return _scalar(node.value) if getattr(node, "style", None) is None else node.value


def _mapping(node: yaml.MappingNode, path: Path, *, layer: Layer, budget: Iterator[int]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise MalformedError("expected a name before the colon, got a list or a mapping", line, path)
        key = key_node.value
        inner = (*path, key)
        if key in values:
            first = layer.origins.get(inner, "").rpartition(" ")[2]
            reason = f"is given twice, first in line {first}; keep one"
            layer.problems.append(Problem(at_line(layer.name, line), inner, reason))
            continue
        layer.origins[inner] = at_line(layer.name, line)
        values[key] = _construct(value_node, inner, layer=layer, budget=budget)
    return values


def _scalar(text: str) -> Any:
    """Parse a plain scalar: null, a boolean, a number or text; never a date, an octal or a base-60 number."""
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    if word in _NOT_FINITE:
        return float(_NOT_FINITE[word])
    if _INTEGER.match(text) and len(text) <= files.MAX_DIGITS:
        return int(text.replace("_", ""))
    if _FLOAT.match(text):
        return float(text.replace("_", ""))
    return text
