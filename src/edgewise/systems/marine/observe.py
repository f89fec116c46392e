"""What is told of a world: each robot's own view, the graph of who detects what, and the score so far."""

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
OWN_SCALE = (20.0, 20.0, 2.0, 2.0, 0.5, 1000.0, 1000.0)
OBJECT_SCALE = (20.0, 20.0, 2.0, 2.0, 2.0)


def graph_spec(config: MarineConfig) -> GraphSpec:
    """Nodes are robots, then obstacles; edges lead from what is detected to the robot that detects it."""
    robots, obstacles, _ = config.capacity
    edges = robots * (robots + obstacles) if config.graph_edges else 0
    return GraphSpec(
        robots + obstacles,
        OWN_FEATURES,
        edges=Explicit(edges, sensing.FEATURES if config.graph_edges else 0),
        node_types=2,
    )


def edge_index(config: MarineConfig) -> Tensor:
    """Ends of the edge slots in the order `robot * M + object`, object first, `[2, E]` int64."""
    robots, obstacles, _ = config.capacity
    if not config.graph_edges:
        return torch.zeros(2, 0, dtype=torch.int64)
    slot = torch.arange(robots * (robots + obstacles))
    return torch.stack((slot % (robots + obstacles), slot // (robots + obstacles)))


def graph(state: TensorDict, own: Tensor, *, seen: Tensor | None, index: Tensor) -> dict[str, Tensor]:
    """The graph of the worlds in `state`, `[B]`.

    Args:
        state: of the environment.
        own: what robots know of themselves as it should be told, `[B, A, 7]`.
        seen: what is told of the objects, `[B, A, M, 5]`; None for a graph without edges.
        index: as of `edge_index`.
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
    """Of the episode so far, each `[B]`, means over the world's robots unless said otherwise.

    `success` is whether every robot reached its goal; `reached` and `collisions` are shares of robots;
    `timeout` is whether the limit was met with a robot under way; `time` is seconds and `energy` newton
    seconds until a robot ended; `reward` is the sum over steps and `discounted` the sum discounted by 0.99;
    `shortfall` is how many things found no place at birth.
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
