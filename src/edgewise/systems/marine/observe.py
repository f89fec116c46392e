"""Observations of the marine environment: the detection graph and the metrics."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.systems.marine import sensing
from edgewise.systems.marine.config import MarineConfig

ROBOT, OBSTACLE = range(2)
OWN_FEATURES = 7
"""Goal, velocity over ground and yaw rate in the body frame, and the thrust of both thrusters."""


def graph_spec(config: MarineConfig) -> GraphSpec:
    """Describe the graph: robots, then obstacles as nodes; an edge from each detected object to its robot."""
    robots, obstacles, _ = config.capacity
    edges = robots * (robots + obstacles) if config.graph_edges else 0
    return GraphSpec(
        robots + obstacles,
        OWN_FEATURES,
        edges=Explicit(edges, sensing.FEATURES if config.graph_edges else 0),
        node_types=2,
    )


def edge_index(config: MarineConfig) -> Tensor:
    """Return the edge slots in the order `robot * M + object`, `[2, E]` int64, object to robot."""
    robots, obstacles, _ = config.capacity
    if not config.graph_edges:
        return torch.zeros(2, 0, dtype=torch.int64)
    slot = torch.arange(robots * (robots + obstacles))
    return torch.stack((slot % (robots + obstacles), slot // (robots + obstacles)))


def graph(state: TensorDict, own: Tensor, *, seen: Tensor | None, index: Tensor) -> dict[str, Tensor]:
    """Build the graphs of a batch of worlds.

    Args:
        state: state of the environment, batch `[B]`.
        own: each robot's own features, `[B, A, 7]`.
        seen: features of all objects, `[B, A, M, 5]`; None for a graph without edges.
        index: result of `edge_index`.
    """
    present, obstacles = state["present"], state["obstacle_mask"]
    kind = (torch.zeros_like(present, dtype=torch.int64), torch.ones_like(obstacles, dtype=torch.int64))
    entries = {
        "x": torch.nn.functional.pad(own, (0, 0, 0, obstacles.shape[-1])),
        "node_mask": torch.cat((present, obstacles), -1),
        "node_type": torch.cat(kind, -1),
        "edge_index": index.expand(len(present), -1, -1),
    }
    if seen is None:
        return entries | {"edge_mask": present[:, :0]}
    return entries | {"edge_mask": state["detected"].flatten(1), "edge_attr": seen.flatten(1, 2)}


def metrics(state: TensorDict, *, max_steps: int) -> dict[str, Tensor]:
    """Return the metrics of the episode so far, each `[B]`, means over robots unless stated otherwise.

    `success`: every robot reached its goal. `reached`, `collisions`: fractions of robots. `timeout`: the time
    limit was hit while a robot was still moving. `time` (s) and `energy` (N s): until a robot ended.
    `reward`: sum over steps. `discounted`: the same, discounted by 0.99. `shortfall`: number of robots,
    obstacles and vortices that could not be placed.
    """
    exists = state["active"] | state["terminated"]
    robots = exists.sum(-1).clamp(min=1)
    under_way = exists & ~state["reached"] & ~state["collided"]
    timeout = (state["step"] >= max_steps) & under_way.any(-1)
    return {
        "success": (state["reached"] | ~exists).all(-1).float(),
        "reached": state["reached"].sum(-1) / robots,
        "collisions": state["collided"].sum(-1) / robots,
        "timeout": timeout.float(),
        "time": state["seconds"] / robots,
        "energy": state["energy"] / robots,
        "reward": state["earned"] / robots,
        "discounted": state["discounted"] / robots,
        "shortfall": state["shortfall"].sum(-1).float(),
    }
