"""What the swarm sees of itself: one graph per world, relative features on edges, and the score so far."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.rules import Displacement, Distance, PairFunction, Pairs, Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.systems.swarm import dynamics, tasks
from edgewise.systems.swarm.config import SwarmConfig

AGENT, GOAL, OBSTACLE = range(3)
NODE_FEATURES = 4
"""Velocity, and the way to the goal, or to the nearest landmark where nobody has a goal of its own; zero for
what is no agent."""


def graph_spec(config: SwarmConfig) -> GraphSpec:
    """Nodes are agents, goals or landmarks where shown, then obstacles; edges join what is within sight."""
    goals = config.landmark_capacity if config.shows_landmarks else 0
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


def marks(state: TensorDict, task: str) -> tuple[Tensor, Tensor]:
    """Goals or landmarks `[B, L, 2]`, and which exist, `[B, L]`: one for each agent, or the shape's own."""
    if task == "target":
        return state["goal"], state["active"]
    place = state["landmark"]
    if task == "coverage":
        return place, state["active"]
    return place, torch.ones(place.shape[:-1], dtype=torch.bool, device=place.device)


def way(state: TensorDict, task: str) -> Tensor:
    """Where each agent is drawn to, from where it stands, `[B, A, 2]`."""
    if task == "target":
        return state["goal"] - state["position"]
    return tasks.nearest_landmark(state["position"], *marks(state, task))


def graph(state: TensorDict, config: SwarmConfig) -> dict[str, Tensor]:
    """The graph of the worlds in `state`, `[B]`."""
    position, obstacle, active = (state[name] for name in ("position", "obstacle", "active"))
    agents = torch.cat((state["velocity"], way(state, config.task)), -1)
    kinds = [(position, active, AGENT), (obstacle, state["obstacle_mask"], OBSTACLE)]
    if config.shows_landmarks:
        kinds.insert(1, (*marks(state, config.task), GOAL))
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


def ego_view(state: TensorDict, task: str) -> tuple[Tensor, Tensor]:
    """The reference's observation: one graph for each agent i, everything as seen from i.

    Returns:
        Features `[B, A, E, 7]` of all entities j (agents, goals, obstacles): velocity, position and goal of j
        less those of i (its goal less i's position), and the type; and the distances of all entities,
        `[B, E, E]`.
    """
    position, goal, obstacle = state["position"], marks(state, task)[0], state["obstacle"]
    place = torch.cat((position, goal, obstacle), -2)
    target = torch.cat((position + way(state, task), goal, obstacle), -2)
    velocity = torch.nn.functional.pad(state["velocity"], (0, 0, 0, place.shape[-2] - position.shape[-2]))
    seen = [
        velocity.unsqueeze(-3) - state["velocity"].unsqueeze(-2),
        place.unsqueeze(-3) - position.unsqueeze(-2),
        target.unsqueeze(-3) - position.unsqueeze(-2),
    ]
    kinds = [torch.full_like(part[..., :1], kind) for kind, part in enumerate((position, goal, obstacle))]
    kind = torch.cat(kinds, -2).unsqueeze(-3).expand(*seen[0].shape[:-1], 1)
    return torch.cat((*seen, kind), -1), dynamics.length(place.unsqueeze(-2) - place.unsqueeze(-3))


def ego_graphs(state: TensorDict, task: str) -> dict[str, Tensor]:
    """`ego_view` as entries of an observation: `nodes` `[B, A, E, 7]`, `distance` and `mask` `[B, A, E, E]`.

    The mask says which pairs of entities exist, none in the graph of an absent agent; the rest is zero where
    it is false.
    """
    nodes, distance = ego_view(state, task)
    exists = torch.cat((state["active"], marks(state, task)[1], state["obstacle_mask"]), -1)
    pairs = (exists.unsqueeze(-1) & exists.unsqueeze(-2)).unsqueeze(1) & state["active"][:, :, None, None]
    seen = pairs.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    return {
        "nodes": nodes.masked_fill(~seen, 0.0),
        "distance": distance.unsqueeze(1).masked_fill(~pairs, 0.0),
        "mask": pairs,
    }
