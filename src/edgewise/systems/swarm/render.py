"""Replay of one episode: agents with trails, goals, obstacles, and attention between them."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.systems.swarm import dynamics

RADIUS = dynamics.DIAMETER / 2
NEIGHBOURHOOD = 0.5
"""Distance within which pairs are connected if no attention is given."""
WIDEST = 5.0
"""Maximum width of an edge in pixels."""
FAINTEST = 0.05
"""Attention weight below which an edge is left out."""


def replay(states: TensorDict, attention: Tensor | None = None) -> dict[str, Any]:
    """Build a replay in the format of docs/replay-format.md.

    Args:
        states: one world's `state` over time, `[T + 1]`.
        attention: attention weights of each node (row) on each other node (column), `[T + 1, N, N]`, shown as
            the width of edges from agents to agents and obstacles. Without it, the width shows proximity.
    """
    first, last = states[0], states[-1]
    active, obstacles = first["active"], first["obstacle"][first["obstacle_mask"]]
    frames = [
        _frame(state, None if attention is None else attention[time])
        for time, state in enumerate(states.unbind(0))
    ]
    shown = "attention" if attention is not None else "proximity"
    edges = {"kind": "edges", "color": "blue" if attention is not None else "faint", "opacity": 0.6}
    return {
        "format": "edgewise-replay/1",
        "title": f"swarm of {int(active.sum())}",
        "caption": f"The width of an edge shows {shown}.",
        "fps": 6,
        "layers": [
            *_surroundings(first),
            _bodies("goals", first["goal"][active], color="good", shape="cross"),
            _bodies("obstacles", obstacles, color="muted"),
            {"name": "watched", "between": ["agents", "obstacles"], **edges, **frames[0]["watched"]},
            {"name": "heard", "between": "agents", **edges, **frames[0]["heard"]},
            _bodies("agents", first["position"][active], color="accent", trail=10),
        ],
        "frames": frames,
        "series": [
            {
                "name": "mean distance to the goal",
                "values": [_mean_goal_distance(state) for state in states.unbind(0)],
            }
        ],
        "facts": {
            "reward per agent": round(float(last["earned"] / active.sum()), 2),
            "collisions": float(last["touches"]),
        },
        "legend": [
            {"label": "agent", "color": "accent"},
            {"label": "goal", "color": "good", "shape": "cross"},
            {"label": "obstacle", "color": "muted"},
            {"label": shown, "color": edges["color"], "shape": "line"},
        ],
    }


def _surroundings(state: TensorDict) -> list[dict[str, Any]]:
    """Build the layers of walls and landmarks, if there are any."""
    layers: list[dict[str, Any]] = []
    if (half := state.get("half_side", None)) is not None:
        side = float(half)
        corners = [[-side, -side], [side, -side], [side, side], [-side, side]]
        walls = {"name": "walls", "kind": "polygons", "points": [corners], "outline": "muted"}
        layers.append({**walls, "width": 3})
    if (landmark := state.get("landmark", None)) is not None and len(landmark) < 3:
        layers.append(_bodies("landmarks", landmark, color="orange", shape="diamond"))
    return layers


def _bodies(name: str, place: Tensor, **look: Any) -> dict[str, Any]:
    x, y = place.T.tolist()
    return {"name": name, "kind": "nodes", "x": x, "y": y, "size": RADIUS, "unit": "world", **look}


def _frame(state: TensorDict, attention: Tensor | None) -> dict[str, Any]:
    active, exists = state["active"], state["obstacle_mask"]
    place, obstacle, goal = state["position"][active], state["obstacle"][exists], state["goal"][active]
    arrived = dynamics.length(goal - place) < 2 * RADIUS
    x, y = place.T.tolist()
    goal_x, goal_y = goal.T.tolist()
    if attention is None:
        heard, watched = (1.0 - torch.cdist(place, other) / NEIGHBOURHOOD for other in (place, obstacle))
    else:
        agents = attention[: len(active)][active]
        between = agents[:, : len(active)][:, active]
        heard = torch.maximum(between, between.T)
        watched = agents[:, -len(exists) :][:, exists] if len(exists) else agents[:, :0]
    return {
        "agents": {"x": x, "y": y, "color": ["good" if there else "accent" for there in arrived.tolist()]},
        "goals": {"x": goal_x, "y": goal_y},
        **_moving_obstacles(state),
        "heard": _edges(heard.triu(1)),
        "watched": _edges(watched),
    }


def _moving_obstacles(state: TensorDict) -> dict[str, Any]:
    if state.get("obstacle_velocity", None) is None:
        return {}
    x, y = state["obstacle"][state["obstacle_mask"]].T.tolist()
    return {"obstacles": {"x": x, "y": y}}


def _edges(share: Tensor) -> dict[str, Any]:
    """Build the edges whose weight in `[M, K]` exceeds `FAINTEST`, with widths in proportion."""
    source, target = (share > FAINTEST).nonzero().T
    width = WIDEST * share[source, target].clamp(max=1.0)
    return {"source": source.tolist(), "target": target.tolist(), "width": width.tolist()}


def _mean_goal_distance(state: TensorDict) -> float:
    left = dynamics.length(state["goal"] - state["position"])
    return float(left[state["active"]].mean())
