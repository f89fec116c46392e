"""Replay of one episode: the conflict graph with queues as columns and active nodes highlighted."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.evaluation.replays.graph_replay import frame_times
from edgewise.systems.queueing.sets.bits import unpack


def replay(states: TensorDict) -> dict[str, Any]:
    """Build a replay in the format of docs/replay-format.md from one world's `state` over time, `[T + 1]`."""
    times = frame_times(len(states))
    shown = states[times]
    nodes = int(shown["node_mask"][0].sum())
    adjacency = unpack(shown["neighbours"][0], nodes)[:nodes]
    queues, scheduled = shown["queues"][:, :nodes], shown["scheduled"][:, :nodes]
    x, y = layout(adjacency).T.tolist()
    source, target = adjacency.triu(1).nonzero().T.tolist()
    backlog = queues.sum(-1)
    mean = states["backlog_sum"][-1] / states["step"][-1].clamp_min(1)
    return {
        "format": "edgewise-replay/1",
        "title": "queueing",
        "caption": "Columns are queues; highlighted nodes send in this slot, connected ones never together.",
        "fps": 6,
        "smooth": False,
        "time": times,
        "time_label": "slot",
        "layers": [
            {
                "name": "conflicts",
                "kind": "edges",
                "between": "nodes",
                "color": "faint",
                "source": source,
                "target": target,
            },
            {
                "name": "nodes",
                "kind": "nodes",
                "x": x,
                "y": y,
                "size": 10,
                "color": "muted",
                "bar": 0,
                "bar_max": max(4.0, float(queues.max())),
                "label": [str(node) for node in range(nodes)],
            },
        ],
        "frames": [_frame(queue, active) for queue, active in zip(queues, scheduled, strict=True)],
        "series": [{"name": "backlog", "values": backlog.tolist(), "unit": "packets"}],
        "facts": {"slots": len(states) - 1, "mean backlog": float(mean), "nodes": nodes},
        "legend": [{"label": "sends", "color": "accent"}, {"label": "silent", "color": "muted"}],
    }


def _frame(queues: Tensor, active: Tensor) -> dict[str, Any]:
    """Build the changes of one slot."""
    colours = ["accent" if lit else "muted" for lit in active.tolist()]
    return {"nodes": {"bar": queues.tolist(), "color": colours, "label": [f"{q:g}" for q in queues.tolist()]}}


def layout(adjacency: Tensor) -> Tensor:
    """Compute positions whose distances approximate those in the graph, `[n, n]` bool to `[n, 2]`.

    Uses classical multidimensional scaling; components that are not connected are drawn apart.
    """
    nodes = len(adjacency)
    far = torch.full((nodes, nodes), float(nodes)).masked_fill(adjacency, 1.0).fill_diagonal_(0.0)
    for middle in range(nodes):
        far = torch.minimum(far, far[:, middle, None] + far[None, middle])
    far = far.clamp_max(far[far < nodes].max() + 1.0)
    square = far.double().square()
    centred = square - square.mean(0) - square.mean(1, keepdim=True) + square.mean()
    value, vector = torch.linalg.eigh(-0.5 * centred)
    places = vector[:, -2:] * value[-2:].clamp_min(0.0).sqrt()
    return places if nodes > 1 else torch.zeros(nodes, 2)
