"""Replay of one episode: current, boats with trails and detection ranges, goals, obstacles."""

from __future__ import annotations

import math
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.systems.marine import dynamics, field, scenario

ARROWS = 14
"""Number of arrows along each side of the map."""
LONGEST_ARROW = 1.0
"""Speed in m/s at which arrows reach their maximum length."""
SHADES = 28
DETECTION_RANGE = 20.0
BARS = 8
"""Number of bars that show the distribution of a return."""
COLORS = ("blue", "orange", "teal", "purple", "pink", "accent")


def replay(states: TensorDict, returns: Tensor | None = None) -> dict[str, Any]:
    """Build a replay in the format of docs/replay-format.md.

    North is up. Headings are clockwise from north in the state and counter-clockwise from the right in the
    replay.

    Args:
        states: one world's `state` over time, `[T + 1]`.
        returns: quantiles of the predicted return of each robot's action, `[T + 1, A, Q]`, ascending; the
            first robot's are drawn beside the map.
    """
    first, last = states[0], states[-1]
    exists = first["active"]
    colors = [COLORS[robot % len(COLORS)] for robot in range(int(exists.sum()))]
    frames = [_frame(state, exists, colors) for state in states.unbind(0)]
    expected = [] if returns is None else _expected(returns[:, 0], states["active"][:, 0])
    for frame, bars in zip(frames, expected, strict=False):
        frame["expected"] = {"value": bars}
    obstacles = first["obstacle_mask"]
    return {
        "format": "edgewise-replay/1",
        "title": f"{int(exists.sum())} boats, {int(obstacles.sum())} obstacles",
        "fps": 6,
        "layers": [
            *_current_layers(first),
            _points("goals", first["goal"][exists], size=2.0, shape="cross", color=colors),
            _points("obstacles", first["obstacle"][obstacles], size=scenario.OBSTACLE_RADIUS, color="muted"),
            _boats(first, exists, colors),
            *_bars(expected, colors[0]),
        ],
        "frames": frames,
        "time": [dynamics.STEP_SECONDS * step for step in range(len(frames))],
        "time_label": "seconds",
        "series": [
            {
                "name": "mean distance to the goal",
                "values": [_mean_goal_distance(s, exists) for s in states.unbind(0)],
            }
        ],
        "marks": _endings(states),
        "facts": {
            "reached": f"{int(last['reached'].sum())} of {int(exists.sum())}",
            "collisions": int(last["collided"].sum()),
            "reward per robot": round(float(last["earned"] / exists.sum()), 2),
        },
        "legend": [
            {"label": "boat", "color": "accent", "shape": "bullet"},
            {"label": "goal", "color": "accent", "shape": "cross"},
            {"label": "obstacle", "color": "muted"},
        ],
    }


def _expected(quantiles: Tensor, active: Tensor) -> list[list[float]]:
    """Average one robot's quantiles `[T + 1, Q]` in `BARS` groups; zero after the robot has ended."""
    parts = torch.stack([part.mean(-1) for part in quantiles.tensor_split(BARS, -1)], -1)
    return parts.masked_fill(~active.unsqueeze(-1), 0.0).tolist()


def _bars(expected: list[list[float]], color: str) -> list[dict[str, Any]]:
    """Build the bar chart of the first robot's predicted return, with one scale for the episode."""
    if not expected:
        return []
    values = [0.0, *(value for bars in expected for value in bars)]
    return [
        {
            "name": "expected",
            "kind": "bars",
            "title": "predicted return of the first boat, from the worst eighth to the best",
            "value": expected[0],
            "low": min(values),
            "high": max(*values, 1.0),
            "color": color,
        }
    ]


def _map(place: Tensor) -> tuple[list[float], list[float]]:
    """Convert places `[n, 2]` (north, east) to x and y of the picture."""
    north, east = place.double().reshape(-1, 2).T.tolist()
    return east, north


def _points(name: str, place: Tensor, **look: Any) -> dict[str, Any]:
    x, y = _map(place)
    return {"name": name, "kind": "nodes", "x": x, "y": y, "unit": "world", **look}


def _boats(state: TensorDict, exists: Tensor, colors: list[str]) -> dict[str, Any]:
    """Build the layer of all robots, each in the colour of its goal."""
    look = {"shape": "bullet", "size": dynamics.LENGTH / 2, "trail": 60, "ring_color": "faint"}
    return _points("boats", state["position"][exists], **look, **_frame(state, exists, colors)["boats"])


def _frame(state: TensorDict, exists: Tensor, colors: list[str]) -> dict[str, Any]:
    x, y = _map(state["position"][exists])
    active, reached = state["active"][exists].tolist(), state["reached"][exists].tolist()
    ended = ["good" if there else "bad" for there in reached]
    return {
        "boats": {
            "x": x,
            "y": y,
            "heading": (math.pi / 2 - state["heading"][exists]).tolist(),
            "color": [now if acts else end for acts, now, end in zip(active, colors, ended, strict=True)],
            "ring": [DETECTION_RANGE if acts else 0.0 for acts in active],
        }
    }


def _current_layers(state: TensorDict) -> list[dict[str, Any]]:
    """Build the layers of the current's speed and direction; none in still water."""
    if not state["circulation"].any():
        return []
    shade = _speed(_grid(SHADES, state["core"], downwards=True), state)
    points = _grid(ARROWS, state["core"])
    flow = field.velocity(points, cores=state["core"], circulation=state["circulation"])
    speed = dynamics.length(flow).unsqueeze(-1)
    x, y = _map(points)
    dx, dy = _map(flow * (LONGEST_ARROW / speed.clamp(min=LONGEST_ARROW)))
    side = scenario.SIDE
    return [
        {
            "name": "speed of the current",
            "kind": "grid",
            "value": shade,
            "columns": SHADES,
            "bounds": [0.0, 0.0, side, side],
            "opacity": 0.35,
            "smooth": True,
        },
        {
            "name": "current",
            "kind": "arrows",
            "x": x,
            "y": y,
            "dx": dx,
            "dy": dy,
            "scale": 0.9 * side / ARROWS,
            "color": "faint",
        },
    ]


def _grid(count: int, like: Tensor, *, downwards: bool = False) -> Tensor:
    """Return the centres of `count`² cells of the map, row by row from the south or north, `[count², 2]`."""
    middle = (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) * (scenario.SIDE / count)
    return torch.cartesian_prod(middle.flip(0) if downwards else middle, middle)


def _speed(points: Tensor, state: TensorDict) -> list[float]:
    """Compute speeds as shades from 0 to 1, the shade of the longest arrow."""
    flow = field.velocity(points, cores=state["core"], circulation=state["circulation"])
    return (dynamics.length(flow) / LONGEST_ARROW).clamp(max=1.0).tolist()


def _endings(states: TensorDict) -> list[dict[str, Any]]:
    """Build the marks of collisions and arrivals."""
    marks = []
    for name, text, color in (("collided", "collision", "bad"), ("reached", "goal reached", "good")):
        for frame in (states[name].sum(-1).diff() > 0).nonzero().flatten().tolist():
            marks.append({"frame": frame + 1, "text": text, "color": color})
    return sorted(marks, key=lambda mark: mark["frame"])


def _mean_goal_distance(state: TensorDict, exists: Tensor) -> float:
    return float(dynamics.length(state["goal"] - state["position"])[exists].mean())
