"""Replay of one Hex game: hexagonal cells coloured by their stones."""

from __future__ import annotations

import math
from typing import Any

from tensordict import TensorDict

from edgewise.systems.hex import dynamics
from edgewise.systems.hex.notation import write_cell

COLOURS = {dynamics.EMPTY: "faint", dynamics.FIRST: "accent", dynamics.SECOND: "orange"}


def replay(states: TensorDict) -> dict[str, Any]:
    """Build the replay of one game from its `state` over time, `[T + 1]`.

    docs/replay-format.md describes the format.
    """
    size = int(states["size"][0])
    places = [centre(row, column) for row in range(size) for column in range(size)]
    x, y = (list(axis) for axis in zip(*places, strict=True))
    boards = states["stones"][:, : size * size].tolist()
    frames = [{"cells": {"color": [COLOURS[stone] for stone in board]}} for board in boards]
    return {
        "format": "edgewise-replay/1",
        "title": f"hex {size} x {size}",
        "fps": 3,
        "smooth": False,
        "layers": [
            {
                "name": "cells",
                "kind": "nodes",
                "x": x,
                "y": y,
                "shape": "hexagon",
                "size": 0.97,
                "unit": "world",
                "color": "faint",
                "label": [write_cell(cell, size) for cell in range(size * size)],
                "label_place": "center",
            }
        ],
        "frames": frames,
        "facts": {"plies": int(states["plies"][-1])},
        "legend": [
            {"label": "first: top to bottom", "color": COLOURS[dynamics.FIRST]},
            {"label": "second: left to right", "color": COLOURS[dynamics.SECOND]},
        ],
    }


def centre(row: int, column: int) -> tuple[float, float]:
    """Return the centre of a cell for hexagons of radius 1 with a corner on top; y points up."""
    return math.sqrt(3) * (column + row / 2), -1.5 * row
