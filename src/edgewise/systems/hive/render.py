"""Replay of one game of Hive: hexagonal tiles coloured by player, with the moves in UHP as captions.

A circle on a tile says that it can move.
"""

from __future__ import annotations

import math
from typing import Any

from tensordict import TensorDict

from edgewise.systems.hive import dynamics
from edgewise.systems.hive.notation import Hive, write_move, write_tile
from edgewise.systems.hive.pieces import Hand

COLOURS = ("accent", "orange")
MOVABLE = 0.72
"""Radius of the circle on a tile that can move."""
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
    frames = [{"tiles": _tiles(hive, moved)} for hive, moved in zip(hives, last, strict=True)]
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
                "ring_color": "ink",
                "label_place": "center",
            }
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
            {"label": "circled: can move", "color": "ink"},
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
    movable = {slot for slot, _, _ in hive.moves}
    return {
        "x": [x for _, _, x, _ in found],
        "y": [y for _, _, _, y in found],
        "color": [COLOURS[slot // hive.hand.size] for _, slot, _, _ in found],
        "outline": ["ink" if slot == last else "faint" for _, slot, _, _ in found],
        "ring": [MOVABLE if slot in movable else 0 for _, slot, _, _ in found],
        "label": [write_tile(slot, hive.hand)[1:] for _, slot, _, _ in found],
    }


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
