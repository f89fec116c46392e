"""Replays of the problems: routes in the plane, schedules as Gantt charts, marked nodes of a graph."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.evaluation.replays.graph_layout import layout

FORMAT = "edgewise-replay/1"
CYCLE = ("accent", "orange", "teal", "purple", "pink", "good", "warn", "blue", "bad")
"""Colours of routes, jobs and classes of nodes, again from the first when they run out."""
SHAPE = 2.2
"""Width of a Gantt chart over its height."""


def tour(states: TensorDict) -> dict[str, Any]:
    """Draw a round trip; `states` are those of one world over time, `[T + 1]`."""
    start, visits = states[0], states["current"].tolist()[1:]
    ways = list(pairwise(visits))
    count = int(start["exists"].sum())
    if len(visits) == count:
        ways = [*ways, (visits[-1], visits[0])]
    frames = []
    for step in range(len(states)):
        # The last step also leads back to the first city.
        made = ways[: max(0, step - 1)] if step < count else ways
        seen = set(visits[:step])
        frames.append(
            {
                "ways": {"source": [a for a, _ in made], "target": [b for _, b in made]},
                "places": {"color": ["ink" if node in seen else "faint" for node in range(count)]},
            }
        )
    replay = _plane(start, count, "tour", frames, states["length"])
    replay["layers"][0]["color"] = "accent"
    return replay


def routes(states: TensorDict) -> dict[str, Any]:
    """Draw the routes of a vehicle, each in a colour of its own, from the depot and back."""
    start, visits = states[0], states["current"].tolist()
    count = int(start["exists"].sum())
    frames, source, target, colour, number = [], [], [], [], 0
    for step, node in enumerate(visits):
        if step:
            source.append(visits[step - 1])
            target.append(node)
            colour.append(CYCLE[number % len(CYCLE)])
            number += node == 0
        served = set(visits[: step + 1])
        frames.append(
            {
                "ways": {"source": list(source), "target": list(target), "color": list(colour)},
                "places": {"color": ["ink" if place in served else "faint" for place in range(count)]},
            }
        )
    replay = _plane(start, count, "routes", frames, states["length"])
    replay["layers"][0]["color"] = []
    replay["layers"][1]["shape"] = ["square", *["circle"] * (count - 1)]
    replay["layers"][1]["size"] = [8, *[5] * (count - 1)]
    replay["facts"]["routes"] = number
    replay["legend"] = [{"label": "depot", "color": "ink", "shape": "square"}]
    return replay


def schedule(states: TensorDict) -> dict[str, Any]:
    """Draw a schedule: a row for each machine, a bar for each operation, a colour for each job."""
    start, final = states[0], float(states["makespan"][-1])
    machines, jobs = int(start["is_machine"].sum()), int(start["is_job"].sum())
    unit = SHAPE * machines / max(final, 1.0)
    bars: list[list[list[float]]] = []
    colour: list[str] = []
    label: list[str] = []
    frames: list[dict[str, Any]] = [{}]
    for before, after in pairwise(states):
        job = int((after["next"] - before["next"]).argmax())
        step = int(before["next"][job])
        row = machines - 1 - int(start["machine"][job, step])
        end = float(after["ready"][job]) * unit
        begin = end - float(start["duration"][job, step]) * unit
        low, high = row + 0.12, row + 0.88
        bars.append([[begin, low], [end, low], [end, high], [begin, high]])
        colour.append(CYCLE[job % len(CYCLE)])
        label.append(str(job + 1))
        frames.append({"bars": {"points": list(bars), "color": list(colour), "label": list(label)}})
    rows = [[[0.0, float(row)], [SHAPE * machines, float(row)]] for row in range(machines + 1)]
    names = [f"machine {machines - row}" for row in range(machines)]
    return {
        "format": FORMAT,
        "title": f"job shop, {jobs} jobs on {machines} machines",
        "bounds": [-0.22 * SHAPE * machines, -0.2, SHAPE * machines + 0.1, machines + 0.2],
        "fps": 6,
        "smooth": False,
        "layers": [
            {"name": "rows", "kind": "polygons", "points": rows, "closed": False, "color": "faint"},
            {"name": "bars", "kind": "polygons", "points": [], "color": [], "label": []},
            {
                "name": "machines",
                "kind": "nodes",
                "x": [0.0] * machines,
                "y": [row + 0.5 for row in range(machines)],
                "shape": "none",
                "size": 2,
                "label": names,
                "label_place": "left",
            },
        ],
        "frames": frames,
        "series": [{"name": "makespan", "values": states["makespan"].tolist()}],
        "facts": {"makespan": final},
    }


def chosen(states: TensorDict) -> dict[str, Any]:
    """Draw a graph with the nodes that are chosen."""
    marks = states["chosen"].long()
    series = {"nodes": marks.sum(-1)}
    if "weight" in states and states["weight"].shape == marks.shape:
        series["weight"] = (states["weight"] * marks).sum(-1)
    return _marked(states, marks, title="chosen", colours=("faint", "accent"), series=series)


def sides(states: TensorDict) -> dict[str, Any]:
    """Draw a graph with two sides; edges between the sides are dark."""
    marks = (states["side"] > 0).long()
    return _marked(
        states, marks, title="cut", colours=("blue", "orange"), series={"cut": states["cut"]}, cut=True
    )


def colours(states: TensorDict) -> dict[str, Any]:
    """Draw a graph with the colours of its nodes."""
    marks = states["colour"] + 1
    return _marked(
        states, marks, title="colouring", colours=("faint", *CYCLE), series={"colours": marks.amax(-1)}
    )


def _plane(
    start: TensorDict, count: int, name: str, frames: list[dict[str, Any]], length: Tensor
) -> dict[str, Any]:
    """Return a replay of places in the unit square and ways between them."""
    x, y = start["place"][:count].T.tolist()
    total = float(length[-1])
    return {
        "format": FORMAT,
        "title": f"{name} of {count} places",
        "bounds": [-0.04, -0.04, 1.04, 1.04],
        "fps": 6,
        "smooth": False,
        "layers": [
            {"name": "ways", "kind": "edges", "between": "places", "source": [], "target": [], "width": 2},
            {"name": "places", "kind": "nodes", "x": x, "y": y, "size": 5, "color": ["faint"] * count},
        ],
        "frames": frames,
        "series": [{"name": "length", "values": length.tolist()}],
        "facts": {"length": round(total, 4)},
    }


def _marked(
    states: TensorDict,
    marks: Tensor,
    *,
    title: str,
    colours: tuple[str, ...],
    series: dict[str, Tensor],
    cut: bool = False,
) -> dict[str, Any]:
    """Return a replay of a graph whose nodes have the colours of their marks, `[T + 1, N]`."""
    start = states[0]
    count = int(start["exists"].sum())
    source, target = start["edge_index"][:, start["edge_mask"]]
    once = source < target
    ends = torch.stack((source[once], target[once]))
    x, y = layout(count, ends).T.tolist()
    weight = start["weight"][ends[0], ends[1]] if cut else torch.ones(ends.shape[1])
    frames = []
    for at in marks[:, :count]:
        named = [
            colours[0] if mark == 0 else colours[1 + (mark - 1) % (len(colours) - 1)] for mark in at.tolist()
        ]
        frame: dict[str, Any] = {"nodes": {"color": named}}
        if cut:
            crosses = (at[ends[0]] != at[ends[1]]).tolist()
            frame["links"] = {"color": ["ink" if each else "faint" for each in crosses]}
        frames.append(frame)
    links = {"source": ends[0].tolist(), "target": ends[1].tolist()}
    links |= {
        "color": ["faint"] * ends.shape[1],
        "width": [1.25 if each > 0 else 0.6 for each in weight.tolist()],
    }
    nodes = {"x": x, "y": y, "size": 7, "color": [colours[0]] * count, "outline": "muted"}
    return {
        "format": FORMAT,
        "title": f"{title}, {count} nodes",
        "fps": 6,
        "smooth": False,
        "layers": [
            {"name": "links", "kind": "edges", "between": "nodes", **links},
            {"name": "nodes", "kind": "nodes", **nodes},
        ],
        "frames": frames,
        "series": [{"name": name, "values": values.tolist()} for name, values in series.items()],
        "facts": {name: float(values[-1]) for name, values in series.items()},
    }
