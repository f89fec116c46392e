"""Replay of one episode: the network with queues as columns and links as wide as what they carry."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.evaluation.replays.graph_replay import frame_times


def replay(states: TensorDict) -> dict[str, Any]:
    """Build a replay in the format of docs/replay-format.md from one world's `state` over time, `[T + 1]`."""
    times = frame_times(len(states))
    shown = states[times]
    ends = shown["ends"][0].long()
    links = ends[:, 0] >= 0
    start, end = ends[links].T
    goals = sorted({goal for goal in shown["goals"][0].tolist() if goal >= 0})
    nodes = 1 + max(int(ends.max()), *goals)
    queues = shown["queues"].sum(-1)[:, :nodes]
    x, y = layout(start, end, nodes).T.tolist()
    last = states[-1]
    return {
        "format": "edgewise-replay/1",
        "title": "multihop",
        "caption": "Columns are queues; the width of a link shows what it carries in this slot.",
        "fps": 6,
        "smooth": False,
        "time": times,
        "time_label": "slot",
        "layers": [
            {
                "name": "links",
                "kind": "edges",
                "between": "nodes",
                "directed": True,
                "curve": 0.12,
                "color": "faint",
                "width": 1.0,
                "source": start.tolist(),
                "target": end.tolist(),
            },
            {
                "name": "nodes",
                "kind": "nodes",
                "x": x,
                "y": y,
                "size": 9,
                "color": ["good" if node in goals else "muted" for node in range(nodes)],
                "bar": 0,
                "bar_max": max(4.0, float(queues.max())),
                "label": [str(node) for node in range(nodes)],
            },
        ],
        "frames": [_frame(queue, sent[links]) for queue, sent in zip(queues, shown["carried"], strict=True)],
        "series": [{"name": "backlog", "values": shown["queues"].sum((-2, -1)).tolist(), "unit": "packets"}],
        "facts": {
            "slots": len(states) - 1,
            "mean backlog": float(last["backlog_sum"] / last["step"].clamp_min(1)),
            "throughput": float(last["delivered"] / last["arrived"].clamp_min(1.0)),
        },
        "legend": [
            {"label": "carries packets", "color": "accent", "shape": "line"},
            {"label": "destination", "color": "good"},
        ],
    }


def _frame(queues: Tensor, carried: Tensor) -> dict[str, Any]:
    """Build the changes of one slot."""
    amounts = carried.tolist()
    return {
        "nodes": {"bar": queues.tolist()},
        "links": {
            "width": [1.0 + amount for amount in amounts],
            "color": ["accent" if amount > 0 else "faint" for amount in amounts],
        },
    }


def layout(start: Tensor, end: Tensor, nodes: int) -> Tensor:
    """Compute positions whose distances approximate those over undirected links, `[n, 2]`.

    Uses classical multidimensional scaling; components that are not connected are drawn apart.
    """
    far = torch.full((nodes, nodes), float(nodes))
    far[start, end] = far[end, start] = 1.0
    far.fill_diagonal_(0.0)
    for middle in range(nodes):
        far = torch.minimum(far, far[:, middle, None] + far[None, middle])
    far = far.clamp_max(far[far < nodes].max() + 1.0)
    square = far.double().square()
    centred = square - square.mean(0) - square.mean(1, keepdim=True) + square.mean()
    value, vector = torch.linalg.eigh(-0.5 * centred)
    return vector[:, -2:] * value[-2:].clamp_min(0.0).sqrt()
