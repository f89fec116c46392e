"""Replay of one game of Hive: hexagonal tiles coloured by player, with the moves in UHP as captions.

A dot on a tile says that it can move.
"""

from __future__ import annotations

import math
from typing import Any

from tensordict import TensorDict

from edgewise.systems.hive import dynamics
from edgewise.systems.hive.notation import Hive, write_move, write_tile
from edgewise.systems.hive.pieces import Hand

COLOURS = ("accent", "orange")
DOT, ABOVE = 0.14, 0.58
"""Radius of the dot on a tile that can move, and how far it is above the centre."""
LIFT = 0.28
"""How far each level of a stack is drawn above the one below."""


def replay(states: TensorDict) -> dict[str, Any]:
    """Build the replay of one game from its `state` over time, `[T + 1]`.

    docs/replay-format.md describes the format. Tiles appear when they are placed. Kinds are read from the
    hand, which the states store.
    """
    hand = Hand(tuple(states["kinds"][0].tolist()))
    hives = [Hive.of(states, hand, game=time) for time in range(len(states))]
    last = states["last"].tolist()
    frames = [
        {"tiles": _tiles(hive, moved), "movable": _movable(hive)}
        for hive, moved in zip(hives, last, strict=True)
    ]
    around = dynamics.around_queens(states, hand).tolist()
    return {
        "format": "edgewise-replay/1",
        "title": f"hive {hand.letters}",
        "fps": 2,
        "smooth": False,
        "layers": [
            {
                "name": "tiles",
                "kind": "nodes",
                **frames[0]["tiles"],
                "shape": "hexagon",
                "size": 0.97,
                "unit": "world",
                "label_place": "center",
            },
            {"name": "movable", "kind": "nodes", **frames[0]["movable"], "size": DOT, "unit": "world"},
        ],
        "frames": frames,
        "captions": ["", *(_caption(states, hives, time) for time in range(1, len(states)))],
        "series": [
            {"name": f"tiles around {side}'s queen", "values": [counts[player] for counts in around]}
            for player, side in enumerate(("white", "black"))
        ],
        "facts": {"plies": int(states["plies"][-1])},
        "legend": [
            {"label": "white, moves first", "color": COLOURS[0]},
            {"label": "black", "color": COLOURS[1]},
            {"label": "dot: can move", "color": "ink"},
        ],
    }


def _tiles(hive: Hive, last: int) -> dict[str, list[Any]]:
    """Return the tiles on the board as item fields, lower levels first."""
    found = [
        (level, slot, *centre(q, r, level))
        for (q, r), stack in hive.stacks.items()
        for level, slot in enumerate(stack)
    ]
    found.sort()
    return {
        "x": [x for _, _, x, _ in found],
        "y": [y for _, _, _, y in found],
        "color": [COLOURS[slot // hive.hand.size] for _, slot, _, _ in found],
        "outline": ["ink" if slot == last else "faint" for _, slot, _, _ in found],
        "label": [write_tile(slot, hive.hand)[1:] for _, slot, _, _ in found],
    }


def _movable(hive: Hive) -> dict[str, Any]:
    """Return dots on the tiles that can move in this position."""
    slots = {slot for slot, _, _ in hive.moves}
    places = [
        centre(q, r, level)
        for (q, r), stack in hive.stacks.items()
        for level, slot in enumerate(stack)
        if slot in slots
    ]
    x, y = [x for x, _ in places], [y + ABOVE for _, y in places]
    return {"x": x, "y": y, "color": ["ink"] * len(places)}


def _caption(states: TensorDict, hives: list[Hive], time: int) -> str:
    """Return the ply that led to a state."""
    slot = int(states["last"][time])
    if slot < 0:
        return "pass"
    move = (slot, int(states["q"][time, slot]), int(states["r"][time, slot]))
    return write_move(move, hives[time - 1])


def centre(q: int, r: int, level: int) -> tuple[float, float]:
    """Return the centre of a tile for hexagons of radius 1 with a corner on top; y points up."""
    return math.sqrt(3) * (q + r / 2), -1.5 * r + LIFT * level
