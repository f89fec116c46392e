"""A replay in every frame: each layer with what it shows then, and positions between frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from edgewise.evaluation.replays.check import applied

Layer = Mapping[str, Any]
Bounds = tuple[float, float, float, float]

NODE_SIZE = {"world": 0.1, "pixel": 6.0}
"""Radius of a node without `size`, in each unit."""
FPS = 8.0
"""Frames per second of a replay that names none."""
MOVING = ("x", "y", "dx", "dy")


class Episode:
    """An expanded replay.

    Args:
        replay: as `edgewise.evaluation.replays.files.load` returns it.

    Attributes:
        frames: of each moment, every layer by name, in drawing order.
        area: left, bottom, right and top of what is drawn, in world coordinates.
        fps: frames per second at normal speed.
    """

    def __init__(self, replay: Mapping[str, Any]) -> None:
        self.replay = replay
        shown: dict[str, Layer] = {layer["name"]: layer for layer in replay["layers"]}
        self.frames: list[dict[str, Layer]] = []
        for frame in replay["frames"]:
            shown = {**shown, **{name: applied(dict(shown[name]), each) for name, each in frame.items()}}
            self.frames.append(shown)
        self.fps = float(replay.get("fps") or FPS)
        self.has_bounds = bool(replay.get("bounds"))
        self.area = tuple(replay["bounds"]) if self.has_bounds else self._found_area()

    def __len__(self) -> int:
        return len(self.frames)

    def at(self, time: float) -> dict[str, Layer]:
        """Return the layers at a time in frames; between two frames, nodes and arrows are on their way."""
        index = min(int(time), len(self) - 1)
        part, now = time - index, self.frames[index]
        if part <= 0 or index + 1 >= len(self) or self.replay.get("smooth") is False:
            return now
        return {name: _between(layer, self.frames[index + 1][name], part) for name, layer in now.items()}

    def _found_area(self) -> Bounds:
        """Return the area that holds everything in all frames."""
        horizontal: list[float] = []
        vertical: list[float] = []
        for layer in _distinct(self.frames):
            if layer["kind"] in ("nodes", "arrows"):
                horizontal += _reach(layer, layer["x"])
                vertical += _reach(layer, layer["y"])
            elif layer["kind"] == "polygons":
                horizontal += [x for points in layer["points"] for x, _ in points]
                vertical += [y for points in layer["points"] for _, y in points]
            elif layer["kind"] == "grid":
                left, bottom, right, top = layer["bounds"]
                horizontal += [left, right]
                vertical += [bottom, top]
        left, right = _widened(horizontal)
        bottom, top = _widened(vertical)
        return left, bottom, right, top


def item_of(layer: Layer, field: str, index: int, otherwise: Any) -> Any:
    """Return a field of one item: a list has a value for each, anything else applies to all."""
    value = layer.get(field)
    if value is None:
        return otherwise
    found = value[index] if isinstance(value, list) else value
    return otherwise if found is None else found


def _distinct(frames: Iterable[Mapping[str, Layer]]) -> Iterable[Layer]:
    """Yield every layer once; frames share layers that do not change."""
    seen: set[int] = set()
    for frame in frames:
        for layer in frame.values():
            if id(layer) not in seen:
                seen.add(id(layer))
                yield layer


def _reach(layer: Layer, places: list[float]) -> list[float]:
    """Return the coordinates that items reach to, where their sizes are in world units."""
    if layer["kind"] != "nodes" or layer.get("unit") != "world":
        return places
    sizes = [item_of(layer, "size", index, NODE_SIZE["world"]) for index in range(len(places))]
    return [place + sign * size for place, size in zip(places, sizes, strict=True) for sign in (-1, 1)]


def _widened(values: list[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    pad = 0.04 * (high - low) or 1.0
    return low - pad, high + pad


def _between(now: Layer, following: Layer, part: float) -> Layer:
    """Return a layer of nodes or arrows on its way to the next frame."""
    if following is now or now["kind"] not in ("nodes", "arrows") or len(now["x"]) != len(following["x"]):
        return now
    moved = dict(now)
    for field in MOVING:
        if isinstance(now.get(field), list) and isinstance(following.get(field), list):
            pairs = zip(now[field], following[field], strict=True)
            moved[field] = [start + part * (end - start) for start, end in pairs]
    if isinstance(now.get("heading"), list) and isinstance(following.get("heading"), list):
        pairs = zip(now["heading"], following["heading"], strict=True)
        moved["heading"] = [start + part * math.remainder(end - start, math.tau) for start, end in pairs]
    return moved
