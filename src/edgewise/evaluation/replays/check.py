"""Check that a JSON object is a valid replay; an error names the first invalid field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgewise.config.errors import DataError
from edgewise.evaluation.replays.schema import (
    LAYERS,
    LEGEND,
    MARK,
    REQUIRED_TOP,
    SERIES,
    TOP,
    FieldType,
    LayerKind,
    is_number,
)

_LAYER_KEYS = ("name", "kind")
GUIDE = "see docs/replay-format.md"


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
    _expect(isinstance(replay, dict), "replay", f"a {type(replay).__name__}, where an object is needed")
    assert isinstance(replay, dict)
    _check_fields(replay, TOP, "replay", required=REQUIRED_TOP)
    layers = _check_layers(replay["layers"])
    _check_frames(replay["frames"], layers)
    _check_annotations(replay, len(replay["frames"]))
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


def _expect(truth: bool, where: str, what: str) -> None:
    if not truth:
        raise DataError(f"{where}: {what}", hint=GUIDE)


def _check_fields(
    entry: object, fields: Mapping[str, FieldType], where: str, *, required: Iterable[str] = ()
) -> None:
    _expect(isinstance(entry, dict), where, f"an object is needed, got {_short(entry)}")
    assert isinstance(entry, dict)
    for name in required:
        _expect(name in entry, where, f"'{name}' is missing")
    for name, value in entry.items():
        _expect(name in fields, where, f"unknown field '{name}'; there are {', '.join(fields)}")
        _expect(
            fields[name].accepts(value),
            f"{where}.{name}",
            f"{fields[name].name} is needed, got {_short(value)}",
        )


def _check_layers(layers: list[Any]) -> dict[str, dict[str, Any]]:
    """Check each layer, then the node indices of edges; returns the layers by name."""
    named: dict[str, dict[str, Any]] = {}
    for position, layer in enumerate(layers):
        where = f"replay.layers[{position}]"
        _expect(isinstance(layer, dict), where, f"an object is needed, got {_short(layer)}")
        kind, name = layer.get("kind"), layer.get("name")
        _expect(isinstance(name, str) and name != "", where, f"'name' must be a text, got {_short(name)}")
        _expect(name not in named, where, f"a second layer named {name!r}")
        _expect(
            isinstance(kind, str) and kind in LAYERS,
            where,
            f"kind {_short(kind)} is none of {', '.join(LAYERS)}",
        )
        _check_layer(layer, LAYERS[kind], f"{where} ({name!r})")
        named[name] = layer
    for name, layer in named.items():
        if layer["kind"] == "edges":
            _check_edges(layer, named, f"layer {name!r}")
    return named


def _check_layer(layer: dict[str, Any], kind: LayerKind, where: str) -> None:
    for name in (*kind.required, *kind.required_options):
        _expect(name in layer, where, f"'{name}' is missing")
    known = (*_LAYER_KEYS, *kind.items, *kind.options)
    for name, value in layer.items():
        _expect(name in known, where, f"unknown field '{name}'; there are {', '.join(known)}")
        if name in kind.items:
            _check_values(value, kind.items[name], f"{where}.{name}")
        elif name in kind.options:
            accepted = kind.options[name]
            _expect(
                accepted.accepts(value), f"{where}.{name}", f"{accepted.name} is needed, got {_short(value)}"
            )
    _check_lengths(layer, kind, where)


def _check_values(value: object, accepted: FieldType, where: str) -> None:
    """One value for every item, or a list with one for each."""
    if accepted.accepts(value):
        return
    _expect(
        isinstance(value, list), where, f"{accepted.name}, or a list of such, is needed, got {_short(value)}"
    )
    assert isinstance(value, list)
    for position, item in enumerate(value):
        _expect(
            accepted.accepts(item), f"{where}[{position}]", f"{accepted.name} is needed, got {_short(item)}"
        )


def _check_lengths(layer: Mapping[str, Any], kind: LayerKind, where: str) -> None:
    lengths = {name: len(layer[name]) for name in kind.items if _is_list(layer.get(name), kind.items[name])}
    _expect(
        len(set(lengths.values())) <= 1,
        where,
        "fields of one layer need equally many values, got "
        + ", ".join(f"{name}: {length}" for name, length in lengths.items()),
    )
    for name in kind.required:
        _expect(name in lengths, where, f"'{name}' must be a list, one value for each item")


def _is_list(value: object, accepted: FieldType) -> bool:
    return isinstance(value, list) and not accepted.accepts(value)


def _check_edges(layer: Mapping[str, Any], layers: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """Check that both ends of every edge exist."""
    for field, end in zip(("source", "target"), _ends(layer), strict=True):
        _expect(
            end in layers and layers[end]["kind"] == "nodes",
            f"{where}.between",
            f"{end!r} is not a nodes layer",
        )
        count = len(layers[end]["x"])
        for index in layer[field]:
            _expect(index < count, f"{where}.{field}", f"index {index}, but {end!r} has {count} nodes")


def _ends(layer: Mapping[str, Any]) -> list[str]:
    """Return the names of the layers of the edges' sources and targets."""
    between = layer["between"]
    return [between, between] if isinstance(between, str) else between


def _check_frames(frames: list[Any], layers: Mapping[str, dict[str, Any]]) -> None:
    """Apply the frames one after another, and check the layers after each."""
    shown = dict(layers)
    for number, frame in enumerate(frames):
        where = f"replay.frames[{number}]"
        _expect(isinstance(frame, dict), where, f"an object of layer names is needed, got {_short(frame)}")
        for name, fields in frame.items():
            _expect(name in shown, where, f"no layer named {name!r}; there are {', '.join(shown)}")
            _check_change(fields, shown[name], f"{where}.{name}")
            shown[name] = applied(shown[name], fields)
            _check_lengths(shown[name], LAYERS[shown[name]["kind"]], f"{where}.{name}")
        for name, layer in shown.items():
            if layer["kind"] == "edges" and not frame.keys().isdisjoint({name, *_ends(layer)}):
                _check_edges(layer, shown, f"{where}.{name}")


def _check_change(fields: object, layer: Mapping[str, Any], where: str) -> None:
    kind = LAYERS[layer["kind"]]
    _expect(isinstance(fields, dict), where, f"an object of fields is needed, got {_short(fields)}")
    assert isinstance(fields, dict)
    for name, value in fields.items():
        _expect(name in kind.items, where, f"{name!r} cannot change; {', '.join(kind.items)} can")
        if isinstance(value, dict):
            _check_sparse(value, layer.get(name), kind.items[name], f"{where}.{name}")
        else:
            _check_values(value, kind.items[name], f"{where}.{name}")


def _check_sparse(changes: dict[Any, Any], before: object, accepted: FieldType, where: str) -> None:
    """Check that changes by index are applied to a list that has these indices."""
    _expect(
        _is_list(before, accepted),
        where,
        "changes by index need a list before them, from the layer or an earlier frame",
    )
    assert isinstance(before, list)
    for index, value in changes.items():
        valid = isinstance(index, str) and index.isdecimal() and int(index) < len(before)
        _expect(valid, where, f"index {_short(index)} must be a decimal text below {len(before)}")
        _expect(
            accepted.accepts(value), f"{where}[{index}]", f"{accepted.name} is needed, got {_short(value)}"
        )


def _check_annotations(replay: dict[str, Any], frames: int) -> None:
    """Check everything but the layers: series, captions, marks, legend, facts, times."""
    for position, series in enumerate(replay.get("series", [])):
        where = f"replay.series[{position}]"
        _check_fields(series, SERIES, where, required=("name", "values"))
        _expect(
            len(series["values"]) == frames,
            where,
            f"{len(series['values'])} values, but there are {frames} frames",
        )
    for position, mark in enumerate(replay.get("marks", [])):
        _check_fields(mark, MARK, f"replay.marks[{position}]", required=("frame", "text"))
        _expect(
            mark["frame"] < frames, f"replay.marks[{position}]", f"frame {mark['frame']} of {frames} frames"
        )
    for position, entry in enumerate(replay.get("legend", [])):
        _check_fields(entry, LEGEND, f"replay.legend[{position}]", required=("label",))
    for name, fact in replay.get("facts", {}).items():
        _expect(
            isinstance(fact, str) or is_number(fact),
            f"replay.facts.{name}",
            f"a text or number is needed, got {_short(fact)}",
        )
    for name in ("captions", "time"):
        length = len(replay.get(name, [])) or frames
        _expect(length == frames, f"replay.{name}", f"{length} values, but there are {frames} frames")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
