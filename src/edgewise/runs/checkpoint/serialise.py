"""Convert a nested state to a JSON skeleton and a flat dict of tensors, and back, without pickle."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from torch import Tensor

State: TypeAlias = Any
"""Nested dicts, lists and tuples; leaves are tensors, numbers, strings, booleans or None."""

Skeleton: TypeAlias = Any
"""The state as JSON. An object has one entry, whose name is its type:
`map` a dict with string keys, `items` a dict with string or integer keys, `tuple` a tuple,
`float` the bits of a number that is not finite, `tensor` the name of a tensor stored elsewhere."""


Path: TypeAlias = tuple[object, ...]
"""The keys and indices that lead to an entry of a state."""


NOT_COMPARED = ("generator", "stage")
"""Keys of the state of a random generator, and of the settings of a stage, which its environment checks."""


def flatten(state: State) -> tuple[Skeleton, dict[str, Tensor]]:
    """Return the skeleton of `state`, and its tensors by path, such as `actor/encoder.0.weight`.

    Raises:
        TypeError: something in the state is neither a container nor a leaf; the message names its path.
    """
    tensors: dict[str, Tensor] = {}
    return _encode(state, (), tensors), tensors


def unflatten(skeleton: Skeleton, tensors: Mapping[str, Tensor]) -> State:
    """Rebuild the state from the output of `flatten`.

    Raises:
        ValueError: the skeleton is malformed, or does not match the tensors.
    """
    unused = dict(tensors)
    state = _decode(skeleton, unused)
    if unused:
        raise ValueError(f"tensor {next(iter(unused))} belongs to no part of the state")
    return state


def difference(found: State, expected: State) -> str | None:
    """Return why `found` cannot be loaded in place of `expected`, or None if it can.

    Tensors must agree in name, shape and dtype. An empty container or None on either side matches anything:
    an optimiser has no moments before its first step, and a rollout carries nothing yet. So does the state of
    a random generator, whose size depends on its device, and a stage, whose settings may be a number here and
    a range there.
    """
    return next(_differences(found, expected, ()), None)


def path_name(path: Path) -> str:
    """Join a path of keys to one string; a slash inside a key is escaped as in a JSON pointer."""
    return "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _encode(value: State, path: Path, tensors: dict[str, Tensor]) -> Skeleton:
    if isinstance(value, Tensor):
        name = path_name(path)
        if name in tensors:
            raise TypeError(
                f"two entries of the state are called {name}: an integer and a string key are equal"
            )
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": struct.pack(">d", value).hex()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        entries = [_encode(entry, (*path, index), tensors) for index, entry in enumerate(value)]
        return entries if isinstance(value, list) else {"tuple": entries}
    if isinstance(value, Mapping):
        return _encode_mapping(value, path, tensors)
    kinds = "dicts, lists, tuples, tensors, numbers, strings and None"
    raise TypeError(f"{_location(path)} is a {type(value).__name__}; a checkpoint holds {kinds}")


def _encode_mapping(value: Mapping[Any, Any], path: Path, tensors: dict[str, Tensor]) -> Skeleton:
    for key in value:
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise TypeError(f"{_location(path)} has the key {key!r}; keys are strings or integers")
    entries = [(key, _encode(entry, (*path, key), tensors)) for key, entry in value.items()]
    if all(isinstance(key, str) for key, _ in entries):
        return {"map": dict(entries)}
    return {"items": [list(entry) for entry in entries]}


def _location(path: Path) -> str:
    return path_name(path) or "the state"


def _decode(skeleton: Skeleton, unused: dict[str, Tensor]) -> State:
    if isinstance(skeleton, list):
        return [_decode(entry, unused) for entry in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    if len(skeleton) != 1:
        raise ValueError(f"an entry of the state has {len(skeleton)} tags instead of one")
    ((tag, content),) = skeleton.items()
    match tag, content:
        case "tensor", str() if content in unused:
            return unused.pop(content)
        case "tensor", _:
            raise ValueError(f"the state refers to a tensor {content!r} that is not there")
        case "float", str() if len(content) == 16:
            return struct.unpack(">d", bytes.fromhex(content))[0]
        case "tuple", list():
            return tuple(_decode(entry, unused) for entry in content)
        case "map", dict():
            return {key: _decode(entry, unused) for key, entry in content.items()}
        case "items", list():
            return {_key(pair): _decode(pair[1], unused) for pair in content}
    raise ValueError(f"an entry of the state has the unknown tag {tag!r}")


def _key(pair: object) -> str | int:
    if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int):
        return pair[0]
    raise ValueError("a dict of the state has an entry that is not a key and a value")


def _differences(found: State, expected: State, path: Path) -> Iterator[str]:
    if _is_empty(found) or _is_empty(expected) or (path and path[-1] in NOT_COMPARED):
        return
    if isinstance(expected, Tensor) or isinstance(found, Tensor):
        if _describe(found) != _describe(expected):
            yield f"{path_name(path)} is {_describe(found)}, this run has {_describe(expected)}"
    elif isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in sorted(found.keys() ^ expected.keys(), key=str):
            owner = "this run has no such entry" if key in found else "the checkpoint has no such entry"
            yield f"{path_name((*path, key))}: {owner}"
        for key in sorted(found.keys() & expected.keys(), key=str):
            yield from _differences(found[key], expected[key], (*path, key))
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        if len(found) != len(expected):
            yield f"{path_name(path)} has {len(found)} entries, this run has {len(expected)}"
        for index, (left, right) in enumerate(zip(found, expected, strict=False)):
            yield from _differences(left, right, (*path, index))
    elif isinstance(expected, Mapping | list | tuple) or isinstance(found, Mapping | list | tuple):
        yield f"{path_name(path)} is {_describe(found)}, this run has {_describe(expected)}"


def _is_empty(value: State) -> bool:
    return value is None or (isinstance(value, Mapping | list | tuple) and not value)


def _describe(value: State) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return f"a {type(value).__name__}"
