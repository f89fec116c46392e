"""One episode as a replay: agents with their trails, goals, obstacles, and who senses whom."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.swarm import dynamics

RADIUS = dynamics.DIAMETER / 2
NEIGHBOURHOOD = 0.5
"""Pairs nearer than this are joined in the picture; all that sense each other would cover it."""


def replay(states: TensorDict) -> dict[str, Any]:
    """The episode in the format of docs/replay-format.md, from one world's `state` over time, `[T + 1]`."""
    first, last = states[0], states[-1]
    active, obstacles = first["active"], first["obstacle"][first["obstacle_mask"]]
    frames = [_frame(state, active) for state in states.unbind(0)]
    return {
        "format": "edgewise-replay/1",
        "title": f"swarm of {int(active.sum())}",
        "fps": 6,
        "layers": [
            _bodies("goals", first["goal"][active], color="good", shape="cross"),
            _bodies("obstacles", obstacles, color="muted"),
            _bodies("agents", first["position"][active], color="accent", trail=10),
            {"name": "near", "kind": "edges", "between": "agents", "color": "faint", **frames[0]["near"]},
        ],
        "frames": frames,
        "series": [
            {"name": "mean distance to the goal", "values": [_left(state) for state in states.unbind(0)]}
        ],
        "facts": {
            "reward per agent": round(float(last["earned"] / active.sum()), 2),
            "collisions": float(last["touches"]),
        },
        "legend": [
            {"label": "agent", "color": "accent"},
            {"label": "goal", "color": "good", "shape": "cross"},
            {"label": "obstacle", "color": "muted"},
        ],
    }


def _bodies(name: str, place: Tensor, **look: Any) -> dict[str, Any]:
    x, y = place.T.tolist()
    return {"name": name, "kind": "nodes", "x": x, "y": y, "size": RADIUS, "unit": "world", **look}


def _frame(state: TensorDict, active: Tensor) -> dict[str, Any]:
    place = state["position"][active]
    arrived = dynamics.length(state["goal"][active] - place) < 2 * RADIUS
    x, y = place.T.tolist()
    distance = torch.cdist(place, place)
    source, target = ((distance < NEIGHBOURHOOD).triu(1)).nonzero().T
    width = 3.0 * (1.0 - distance[source, target] / NEIGHBOURHOOD)
    return {
        "agents": {"x": x, "y": y, "color": ["good" if there else "accent" for there in arrived.tolist()]},
        "near": {"source": source.tolist(), "target": target.tolist(), "width": width.tolist()},
    }


def _left(state: TensorDict) -> float:
    left = dynamics.length(state["goal"] - state["position"])
    return float(left[state["active"]].mean())
