"""Observations of the swarm: one graph per world with relative edge features, ego graphs, and the metrics."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import needs_static_shapes
from edgewise.graphs.pair_features import Displacement, Distance, PairFeature, PairFunction, Pairs
from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.systems.swarm import double_integrator, dynamics, tasks
from edgewise.systems.swarm.config import SwarmConfig

AGENT, GOAL, OBSTACLE = range(3)
NODE_FEATURES = 4
"""Velocity, and the offset to the goal (or to the nearest landmark if agents have no goals); zero for nodes
that have none."""

NOTHING = 1e-30
"""Radius within which there is no other body."""
NEAR = dynamics.DIAMETER
"""Gap between two bodies at which their nearness is 1/e."""
COASTED = {
    "damped": (
        dynamics.TIME_STEP * (1.0 - dynamics.DAMPING),
        dynamics.TIME_STEP * ((1.0 - dynamics.DAMPING) + (1.0 - dynamics.DAMPING) ** 2),
    ),
    "double_integrator": (10 * double_integrator.TIME_STEP,),
}
"""Distances that a free body coasts in one and two steps, or in ten short ones, per unit of speed."""
FORESIGHT = 1.0
"""Seconds within which the closest approach of two bodies is looked for."""


def graph_spec(config: SwarmConfig) -> GraphSpec:
    """Describe the graph: agents, visible goals or landmarks, obstacles; edges within the sensing radius."""
    goals = config.landmark_capacity if config.shows_landmarks else 0
    relative = PairFunction(_relative_velocity, 2)
    features: dict[str, tuple[PairFeature, ...]] = {
        "relative": (Displacement(), Distance(), relative),
        "approach": (Displacement(), relative, Approach(COASTED[config.dynamics])),
    }
    rule = SensedBodies(
        config.sensing_radius or NOTHING,
        features=features[config.edge_features],
        receivers=(AGENT,) if config.one_way else None,
    )
    nodes = config.agent_capacity + goals + config.obstacle_capacity
    return GraphSpec(nodes, NODE_FEATURES, edges=rule, position_dim=2, node_types=3)


@dataclass(frozen=True)
class SensedBodies(Radius):
    """Edges within the sensing radius, whose features are computed for sensed bodies only.

    Most pairs of a padded world are no edges. Where shapes must be static, all pairs have features.
    """

    def attributes(self, graph: TensorDict, pairs: Pairs) -> Tensor | None:
        """Compute the features of pairs, `[*B, *L, D]`; those of pairs that are not edges are zero."""
        position = graph["pos"]
        if pairs.index is not None or position.device.type != "cpu" or needs_static_shapes(position):
            return super().attributes(graph, pairs)
        linked = self.link(pairs.distance, self.allowed(graph))
        number = linked.flatten().nonzero().squeeze(-1)
        nodes = linked.shape[-1]
        source = number // nodes
        target = source - source % nodes + number % nodes
        flat = {name: graph[name].reshape(-1, graph[name].shape[-1]) for name in ("x", "pos")}
        apart = flat["pos"][source] - flat["pos"][target]
        listed = Pairs(apart, pairs.distance.flatten()[number], torch.stack((source, target)))
        found = super().attributes(TensorDict(flat), listed)
        if found is None:
            return None
        shape = (*linked.shape, found.shape[-1])
        return found.new_zeros(linked.numel(), found.shape[-1]).index_copy_(0, number, found).view(shape)


def _relative_velocity(graph: TensorDict, pairs: Pairs) -> Tensor:
    velocity = graph["x"][..., :2]
    return pairs.source(velocity) - pairs.target(velocity)


@dataclass(frozen=True)
class Approach:
    """Nearness of a body, and the direction to it scaled by that: now, soon and at the closest approach.

    Attention weighs bodies by a linear function of these, so it needs nearness itself besides directions.
    Bodies may pass each other within a step: what counts is how near they are at the end of the next steps.

    Args:
        coasted: distances per unit of speed that bodies coast until each soon.
    """

    coasted: tuple[float, ...]

    def width(self, position_dim: int) -> int:
        """Return the number of features: directions and scalars."""
        return (2 + len(self.coasted)) * (position_dim + 1)

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:
        """Compute the features of all pairs."""
        offset, velocity = pairs.displacement, _relative_velocity(graph, pairs)
        closest = dynamics.time_of_closest_approach(offset, velocity).clamp(0.0, FORESIGHT).unsqueeze(-1)
        soon = [offset + far * velocity for far in self.coasted]
        ahead = (offset, *soon, offset + closest * velocity)
        return torch.cat([part for each in ahead for part in _nearness(each)], -1)


def _nearness(offset: Tensor) -> tuple[Tensor, Tensor]:
    """Return the direction of an offset `[..., 2]` scaled by its nearness, and the nearness `[..., 1]`.

    Nearness is 1 at contact and falls exponentially with the gap.
    """
    distance = dynamics.length(offset).unsqueeze(-1)
    nearness = torch.exp((dynamics.DIAMETER - distance).clamp(max=0.0) / NEAR)
    return offset / distance.clamp(min=1e-6) * nearness, nearness


def landmarks(state: TensorDict, task: str) -> tuple[Tensor, Tensor]:
    """Return the positions `[B, L, 2]` and the mask `[B, L]` of goals or landmarks."""
    if task == "target":
        return state["goal"], state["active"]
    place = state["landmark"]
    if task == "coverage":
        return place, state["active"]
    return place, torch.ones(place.shape[:-1], dtype=torch.bool, device=place.device)


def goal_offset(state: TensorDict, task: str) -> Tensor:
    """Return the offset from each agent to its goal or to the nearest landmark, `[B, A, 2]`."""
    if task == "target":
        return state["goal"] - state["position"]
    return tasks.nearest_landmark(state["position"], *landmarks(state, task))


def graph(state: TensorDict, config: SwarmConfig) -> dict[str, Tensor]:
    """Build the graphs of a batch of worlds, `[B]`."""
    position, obstacle, active = (state[name] for name in ("position", "obstacle", "active"))
    agents = torch.cat((state["velocity"], goal_offset(state, config.task)), -1)
    kinds = [(position, active, AGENT), (obstacle, state["obstacle_mask"], OBSTACLE)]
    if config.shows_landmarks:
        kinds.insert(1, (*landmarks(state, config.task), GOAL))
    places, masks, _ = zip(*kinds, strict=True)
    place = torch.cat(places, -2)
    features = torch.nn.functional.pad(agents, (0, 0, 0, place.shape[-2] - agents.shape[-2]))
    if config.obstacles_move:
        features[..., features.shape[-2] - obstacle.shape[-2] :, :2] = state["obstacle_velocity"]
    node_type = torch.cat([torch.full_like(mask, kind, dtype=torch.int64) for _, mask, kind in kinds], -1)
    return {
        "x": features,
        "pos": place,
        "node_mask": torch.cat(masks, -1),
        "node_type": node_type,
    }


def metrics(state: TensorDict, *, max_steps: int) -> dict[str, Tensor]:
    """Return the metrics of the episode so far, each `[B]`, means over agents except `success`.

    `success`: every agent arrived at least once. `time`: fraction of the episode until an agent first
    arrives, 1 if it does not. `collisions`: contacts per agent, each touching pair counted once. `safe`:
    never touched another body. `finish`: arrived. `safe_finish`: both, the success rate of GCBF+. `reward`:
    sum of the individual rewards. `distance`: distance to the goal.
    """
    active = state["active"]
    agents = active.sum(-1).clamp(min=1)
    arrival = state["arrival"].masked_fill(~active, 0)
    left = dynamics.length(state["goal"] - state["position"]).masked_fill(~active, 0.0)
    finished = active & (arrival <= max_steps)
    safe = active & ~state["touched"]
    return {
        "success": ((arrival <= max_steps).all(-1)).float(),
        "time": arrival.clamp(max=max_steps).sum(-1) / (agents * max_steps),
        "collisions": state["touches"] / agents,
        "reward": state["earned"] / agents,
        "distance": left.sum(-1) / agents,
        "safe": safe.sum(-1) / agents,
        "finish": finished.sum(-1) / agents,
        "safe_finish": (safe & finished).sum(-1) / agents,
    }


def ego_view(state: TensorDict, task: str) -> tuple[Tensor, Tensor]:
    """Build the reference's observation: one graph for each agent i, relative to i.

    Returns:
        Features `[B, A, E, 7]` of all entities j (agents, goals, obstacles): velocity, position and goal of j
        minus velocity, position and position of i, and the type; and the distances of all entities,
        `[B, E, E]`.
    """
    position, goal, obstacle = state["position"], landmarks(state, task)[0], state["obstacle"]
    place = torch.cat((position, goal, obstacle), -2)
    target = torch.cat((position + goal_offset(state, task), goal, obstacle), -2)
    velocity = torch.nn.functional.pad(state["velocity"], (0, 0, 0, place.shape[-2] - position.shape[-2]))
    if (drift := state.get("obstacle_velocity", None)) is not None:
        velocity[..., place.shape[-2] - obstacle.shape[-2] :, :] = drift
    seen = [
        velocity.unsqueeze(-3) - state["velocity"].unsqueeze(-2),
        place.unsqueeze(-3) - position.unsqueeze(-2),
        target.unsqueeze(-3) - position.unsqueeze(-2),
    ]
    kinds = [torch.full_like(part[..., :1], kind) for kind, part in enumerate((position, goal, obstacle))]
    kind = torch.cat(kinds, -2).unsqueeze(-3).expand(*seen[0].shape[:-1], 1)
    return torch.cat((*seen, kind), -1), dynamics.length(place.unsqueeze(-2) - place.unsqueeze(-3))


def ego_graphs(state: TensorDict, task: str) -> dict[str, Tensor]:
    """Return `ego_view` as an observation: `nodes` `[B, A, E, 7]`, `distance` and `mask` `[B, A, E, E]`.

    The mask is true for existing pairs of entities in the graph of an existing agent; the other entries are
    zero where it is false.
    """
    nodes, distance = ego_view(state, task)
    exists = torch.cat((state["active"], landmarks(state, task)[1], state["obstacle_mask"]), -1)
    pairs = (exists.unsqueeze(-1) & exists.unsqueeze(-2)).unsqueeze(1) & state["active"][:, :, None, None]
    seen = pairs.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    return {
        "nodes": nodes.masked_fill(~seen, 0.0),
        "distance": distance.unsqueeze(1).masked_fill(~pairs, 0.0),
        "mask": pairs,
    }
