"""What the swarm sees of itself: one graph per world, relative features on edges, and the score so far."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.swarm import dynamics
from edgewise.envs.swarm.config import SwarmConfig
from edgewise.graphs.rules import Displacement, Distance, PairFunction, Pairs, Radius
from edgewise.graphs.spec import GraphSpec

AGENT, GOAL, OBSTACLE = range(3)
NODE_FEATURES = 4
"""Velocity, and the way to the goal; zero for what is no agent."""


def graph_spec(config: SwarmConfig) -> GraphSpec:
    """Nodes are agents, goals where asked for, then obstacles; edges join what is within sensing radius."""
    goals = config.agent_capacity if config.goal_nodes else 0
    rule = Radius(
        config.sensing_radius,
        features=(Displacement(), Distance(), PairFunction(_relative_velocity, 2)),
        receivers=(AGENT,) if config.one_way else None,
    )
    nodes = config.agent_capacity + goals + config.obstacle_capacity
    return GraphSpec(nodes, NODE_FEATURES, edges=rule, position_dim=2, node_types=3)


def _relative_velocity(graph: TensorDict, pairs: Pairs) -> Tensor:  # noqa: ARG001
    velocity = graph["x"][..., :2]
    return velocity.unsqueeze(-2) - velocity.unsqueeze(-3)


def graph(state: TensorDict, *, goal_nodes: bool) -> dict[str, Tensor]:
    """The graph of the worlds in `state`, `[B]`."""
    position, goal, obstacle, active = (state[name] for name in ("position", "goal", "obstacle", "active"))
    agents = torch.cat((state["velocity"], goal - position), -1)
    kinds = [(position, active, AGENT), (obstacle, state["obstacle_mask"], OBSTACLE)]
    if goal_nodes:
        kinds.insert(1, (goal, active, GOAL))
    places, masks, _ = zip(*kinds, strict=True)
    place = torch.cat(places, -2)
    node_type = torch.cat([torch.full_like(mask, kind, dtype=torch.int64) for _, mask, kind in kinds], -1)
    return {
        "x": torch.nn.functional.pad(agents, (0, 0, 0, place.shape[-2] - agents.shape[-2])),
        "pos": place,
        "node_mask": torch.cat(masks, -1),
        "node_type": node_type,
    }


def metrics(state: TensorDict, *, max_steps: int) -> dict[str, Tensor]:
    """Of the episode so far, each `[B]`, means over agents but for `success`.

    `time` is the share of the episode until an agent first arrives, 1 for one that does not; `success` is
    whether every agent arrived at least once; `collisions` counts a touching pair once; `reward` sums agents'
    own rewards.
    """
    active = state["active"]
    agents = active.sum(-1).clamp(min=1)
    arrival = state["arrival"].masked_fill(~active, 0)
    left = dynamics.length(state["goal"] - state["position"]).masked_fill(~active, 0.0)
    return {
        "success": ((arrival <= max_steps).all(-1)).float(),
        "time": arrival.clamp(max=max_steps).sum(-1) / (agents * max_steps),
        "collisions": state["touches"] / agents,
        "reward": state["earned"] / agents,
        "distance": left.sum(-1) / agents,
    }


def ego_view(state: TensorDict) -> tuple[Tensor, Tensor]:
    """The reference's observation: one graph for each agent i, everything as seen from i.

    Returns:
        Features `[B, A, E, 7]` of all entities j (agents, goals, obstacles): velocity, position and goal of j
        less those of i (its goal less i's position), and the type; and the distances of all entities,
        `[B, E, E]`.
    """
    position, goal, obstacle = state["position"], state["goal"], state["obstacle"]
    place = torch.cat((position, goal, obstacle), -2)
    target = torch.cat((goal, goal, obstacle), -2)
    velocity = torch.nn.functional.pad(state["velocity"], (0, 0, 0, place.shape[-2] - position.shape[-2]))
    seen = [
        velocity.unsqueeze(-3) - state["velocity"].unsqueeze(-2),
        place.unsqueeze(-3) - position.unsqueeze(-2),
        target.unsqueeze(-3) - position.unsqueeze(-2),
    ]
    kinds = [torch.full_like(part[..., :1], kind) for kind, part in enumerate((position, goal, obstacle))]
    kind = torch.cat(kinds, -2).unsqueeze(-3).expand(*seen[0].shape[:-1], 1)
    return torch.cat((*seen, kind), -1), dynamics.length(place.unsqueeze(-2) - place.unsqueeze(-3))
