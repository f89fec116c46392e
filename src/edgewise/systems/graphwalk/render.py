"""Render one episode as a replay: the graph laid out by its distances, with the walker on it."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.systems.graphwalk import dynamics


def replay(states: TensorDict) -> dict[str, Any]:
    """Build the replay of one episode; the format is documented in docs/replay-format.md.

    Args:
        states: `state` of one world over time, `[T + 1]`.
    """
    start = states[:1]
    distance = _all_distances(start)
    x, y = layout(distance).T.tolist()
    walk, goal = states["current"].tolist(), int(start["goal"])
    remaining = [int(distance[node, goal]) for node in walk]
    return {
        "format": "edgewise-replay/1",
        "title": "graphwalk",
        "fps": 3,
        "layers": [
            _links(start),
            {"name": "nodes", "kind": "nodes", "x": x, "y": y, "size": 7, "color": _colours(len(x), goal)},
            {
                "name": "walker",
                "kind": "nodes",
                "x": [x[walk[0]]],
                "y": [y[walk[0]]],
                "size": 5,
                "color": "accent",
            },
        ],
        "frames": [{"walker": {"x": [x[node]], "y": [y[node]]}} for node in walk],
        "series": [{"name": "distance to the goal", "values": remaining}],
        "facts": {"steps": len(walk) - 1, "fewest possible": int(start["shortest"])},
        "legend": [{"label": "walker", "color": "accent"}, {"label": "goal", "color": "good"}],
    }


def layout(distance: Tensor) -> Tensor:
    """Compute positions in the plane from distances in the graph, `[n, n]` to `[n, 2]`.

    Classical multidimensional scaling: the two leading eigenvectors of the doubly centred squared distances.
    """
    square = distance.double().square()
    centred = square - square.mean(0) - square.mean(1, keepdim=True) + square.mean()
    value, vector = torch.linalg.eigh(-0.5 * centred)
    return vector[:, -2:] * value[-2:].clamp(min=0).sqrt()


def _all_distances(start: TensorDict) -> Tensor:
    """Compute the distances between all pairs of existing nodes of one graph, `[n, n]`."""
    capacity, nodes = start["node_mask"].shape[-1], int(start["node_mask"].sum())
    graph = start.expand(nodes)
    goal = torch.arange(nodes, device=start.device)
    edges = {"edge_index": graph["edge_index"], "edge_mask": graph["edge_mask"]}
    return dynamics.distances(goal, num_nodes=capacity, **edges)[:, :nodes]


def _links(start: TensorDict) -> dict[str, Any]:
    source, target = start["edge_index"][0, :, start["edge_mask"][0]]
    once = source < target
    ends = {"source": source[once].tolist(), "target": target[once].tolist()}
    return {"name": "links", "kind": "edges", "between": "nodes", "color": "faint", **ends}


def _colours(nodes: int, goal: int) -> list[str]:
    return ["good" if node == goal else "muted" for node in range(nodes)]
