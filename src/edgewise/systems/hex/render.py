"""Replay of one Hex game: hexagonal cells coloured by their stones, and sides by who connects them."""

from __future__ import annotations

import math
from typing import Any

from tensordict import TensorDict

from edgewise.systems.hex import dynamics
from edgewise.systems.hex.notation import write_cell

MARGIN = 0.85
"""Width of the coloured sides, in rows and columns beyond the outermost cells."""
COLOURS = {dynamics.EMPTY: "faint", dynamics.FIRST: "accent", dynamics.SECOND: "orange"}


def replay(states: TensorDict) -> dict[str, Any]:
    """Build the replay of one game from its `state` over time, `[T + 1]`.

    docs/replay-format.md describes the format.
    """
    size = int(states["size"][0])
    places = [centre(row, column) for row in range(size) for column in range(size)]
    x, y = (list(axis) for axis in zip(*places, strict=True))
    boards = states["stones"][:, : size * size].tolist()
    frames = [
        {"cells": {"color": [COLOURS[stone] for stone in board]}, "last": _last(board, before, places)}
        for board, before in zip(boards, [boards[0], *boards], strict=False)
    ]
    return {
        "format": "edgewise-replay/1",
        "title": f"hex {size} x {size}",
        "fps": 3,
        "smooth": False,
        "layers": [
            {
                "name": "sides",
                "kind": "polygons",
                "points": sides(size),
                "color": [COLOURS[dynamics.FIRST], COLOURS[dynamics.SECOND]] * 2,
                "opacity": 0.45,
            },
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
            },
            {
                "name": "last",
                "kind": "nodes",
                **frames[0]["last"],
                "shape": "hexagon",
                "size": 0.97,
                "unit": "world",
                "outline": "ink",
                "label_place": "center",
            },
        ],
        "frames": frames,
        "facts": {"plies": int(states["plies"][-1])},
        "legend": [
            {"label": "first: top to bottom", "color": COLOURS[dynamics.FIRST]},
            {"label": "second: left to right", "color": COLOURS[dynamics.SECOND]},
        ],
    }


def _last(board: list[int], before: list[int], places: list[tuple[float, float]]) -> dict[str, Any]:
    """Return the stone that was placed last, to be drawn with an outline."""
    found = [cell for cell, (stone, old) in enumerate(zip(board, before, strict=True)) if stone != old]
    return {
        "x": [places[cell][0] for cell in found],
        "y": [places[cell][1] for cell in found],
        "color": [COLOURS[board[cell]] for cell in found],
        "label": [write_cell(cell, math.isqrt(len(board))) for cell in found],
    }


def centre(row: float, column: float) -> tuple[float, float]:
    """Return the centre of a cell for hexagons of radius 1 with a corner on top; y points up."""
    return math.sqrt(3) * (column + row / 2), -1.5 * row


def sides(size: int) -> list[list[tuple[float, float]]]:
    """Return the top, right, bottom and left side of a board: bands that begin behind the outermost cells."""
    outer, inner = (
        [centre(low, low), centre(low, high), centre(high, high), centre(high, low)]
        for low, high in ((-MARGIN, size - 1 + MARGIN), (0, size - 1))
    )
    turned = [(following, (following + 1) % 4) for following in range(4)]
    return [[outer[start], outer[end], inner[end], inner[start]] for start, end in turned]
