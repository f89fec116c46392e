"""Replay of one episode: the queues by servers, with jobs as columns, and the routes between them."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict

from edgewise.evaluation.replays.graph_replay import frame_times


def replay(states: TensorDict) -> dict[str, Any]:
    """Build a replay in the format of docs/replay-format.md from one world's `state` over time, `[T + 1]`."""
    times = frame_times(len(states))
    shown = states[times]
    server, onward = shown["server"][0].long(), shown["onward"][0].long()
    queues = int((server >= 0).sum())
    server, onward = server[:queues], onward[:queues]
    place = torch.tensor([int((server[:queue] == server[queue]).sum()) for queue in range(queues)])
    source = (onward >= 0).nonzero().squeeze(-1)
    jobs = shown["jobs"][:, :queues]
    last = states[-1]
    return {
        "format": "edgewise-replay/1",
        "title": "reentrant",
        "caption": "Columns are jobs; the queues of a server are above each other.",
        "fps": 6,
        "smooth": False,
        "time": times,
        "time_label": "step",
        "layers": [
            {
                "name": "routes",
                "kind": "edges",
                "between": "nodes",
                "directed": True,
                "curve": 0.12,
                "color": "faint",
                "width": 1.0,
                "source": source.tolist(),
                "target": onward[source].tolist(),
            },
            {
                "name": "nodes",
                "kind": "nodes",
                "x": server.float().tolist(),
                "y": place.float().tolist(),
                "size": 9,
                "color": "muted",
                "bar": 0,
                "bar_max": max(4.0, float(jobs.max())),
                "label": [str(queue) for queue in range(queues)],
            },
        ],
        "frames": [{"nodes": {"bar": row.tolist()}} for row in jobs],
        "series": [{"name": "jobs", "values": shown["jobs"].sum(-1).tolist(), "unit": "jobs"}],
        "facts": {
            "steps": int(last["step"]),
            "mean jobs": round(float(last["cost_sum"] / last["time"].clamp_min(1e-9)), 2),
        },
    }
