"""Check that a JSON object is a valid replay; an error names the first invalid field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from edgewise.config.errors import DataError
from edgewise.config.wording import errors_by_path, expected
from edgewise.evaluation.replays.schema import LAYERS, Edges, Entry, Layer, Nodes, Replay

GUIDE = "see docs/replay-format.md"

EntryT = TypeVar("EntryT", bound=Entry)


def check(replay: object) -> dict[str, Any]:
    """Return the replay itself if it is valid.

    Raises:
        DataError: naming the first invalid field and what is valid there.

    Example:
        >>> layers = [{"name": "nodes", "kind": "nodes", "x": [0, 1], "y": [0, 0]}]
        >>> replay = {"format": "edgewise-replay/1", "title": "walk", "layers": layers, "frames": [{}]}
        >>> check(replay) is replay
        True
    """
    if not isinstance(replay, dict):
        _refuse("replay", f"a {type(replay).__name__}, where an object is needed")
    found = _parsed(Replay, replay, "replay")
    layers: dict[str, Layer] = {}
    for position, layer in enumerate(found.layers):
        where = f"replay.layers[{position}]"
        kind, name = layer.get("kind"), layer.get("name")
        if kind not in LAYERS:
            _refuse(where, f"kind {_short(kind)} is none of {', '.join(LAYERS)}")
        if name in layers:
            _refuse(where, f"a second layer named {name!r}")
        parsed = _parsed(LAYERS[str(kind)], layer, where)
        layers[parsed.name] = parsed
    for name, each in layers.items():
        _check_edges(each, layers, f"layer {name!r}")
    _check_frames(found, layers)
    _check_lengths(found)
    return replay


def applied(layer: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layer with the changes of one frame applied."""
    after = dict(layer)
    for name, value in fields.items():
        if isinstance(value, dict):
            changed = list(after[name])
            for index, item in value.items():
                changed[int(index)] = item
            after[name] = changed
        else:
            after[name] = value
    return after


def _check_frames(replay: Replay, layers: dict[str, Layer]) -> None:
    """Apply the frames one after another, and check the layers that each changes."""
    shown = {layer["name"]: layer for layer in replay.layers}
    for number, frame in enumerate(replay.frames):
        where = f"replay.frames[{number}]"
        for name, fields in frame.items():
            if name not in shown:
                _refuse(where, f"no layer named {name!r}; there are {', '.join(shown)}")
            kind = type(layers[name])
            for field, value in fields.items():
                if field not in kind.items():
                    _refuse(f"{where}.{name}", f"{field!r} cannot change; {', '.join(kind.items())} can")
                if isinstance(value, dict):
                    _check_indices(value, shown[name].get(field), f"{where}.{name}.{field}")
            shown[name] = applied(shown[name], fields)
            layers[name] = _parsed(kind, shown[name], f"{where}.{name}")
        for name, layer in layers.items():
            if isinstance(layer, Edges) and not frame.keys().isdisjoint({name, *layer.ends}):
                _check_edges(layer, layers, f"{where}.{name}")


def _check_indices(changes: dict[str, Any], before: object, where: str) -> None:
    """Check that changes by index are applied to a list that has these indices."""
    if not isinstance(before, list):
        _refuse(where, "changes by index need a list before them, from the layer or an earlier frame")
    for index in changes:
        if not (isinstance(index, str) and index.isdecimal() and int(index) < len(before)):
            _refuse(where, f"index {_short(index)} must be a decimal text below {len(before)}")


def _check_edges(layer: Layer, layers: Mapping[str, Layer], where: str) -> None:
    """Check that both ends of every edge exist."""
    if not isinstance(layer, Edges):
        return
    for field, end in zip(("source", "target"), layer.ends, strict=True):
        nodes = layers.get(end)
        if not isinstance(nodes, Nodes):
            _refuse(f"{where}.between", f"{end!r} is not a nodes layer")
        count = len(nodes.x)
        for index in getattr(layer, field):
            if index >= count:
                _refuse(f"{where}.{field}", f"index {index}, but {end!r} has {count} nodes")


def _check_lengths(replay: Replay) -> None:
    """Check that everything that changes over time has a value for each frame."""
    frames = len(replay.frames)
    lengths = {f"series[{position}]": len(each.values) for position, each in enumerate(replay.series)}
    for name, values in (("captions", replay.captions), ("time", replay.time)):
        lengths |= {name: len(values)} if values else {}
    for name, length in lengths.items():
        if length != frames:
            _refuse(f"replay.{name}", f"{length} values, but there are {frames} frames")
    for position, mark in enumerate(replay.marks):
        if mark.frame >= frames:
            _refuse(f"replay.marks[{position}]", f"frame {mark.frame} of {frames} frames")


def _parsed(model: type[EntryT], values: dict[str, Any], where: str) -> EntryT:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        path, errors = max(errors_by_path(error, values).items(), key=lambda found: len(found[0]))
        first = errors[0]
        *above, last = path or ("",)
        place = where + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in above)
        if first["type"] == "missing":
            _refuse(place, f"'{last}' is missing")
        if first["type"] == "extra_forbidden":
            _refuse(place, f"unknown field '{last}'; there are {', '.join(model.model_fields)}")
        if not path:
            _refuse(where, first["msg"].removeprefix("Value error, "))
        place += f"[{last}]" if isinstance(last, int) else f".{last}"
        wanted = " or ".join(dict.fromkeys(map(expected, errors)))
        _refuse(place, f"{wanted} is needed, got {_short(first['input'])}")


def _refuse(where: str, what: str) -> NoReturn:
    raise DataError(f"{where}: {what}", hint=GUIDE)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
