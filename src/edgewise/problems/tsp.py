"""The travelling salesman: visit every city once by a short round trip. `edgewise train tsp20-pomo`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.ranges import lower_bound, upper_bound
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.problems.config import TSPConfig
from edgewise.problems.plane import at_nodes, centred, symmetric, ways

BY_RULE = Callable[[TensorDictBase], TensorDictBase]


class TSPEnv(GraphEnv[TSPConfig]):
    """Choose the next city until all are visited; the reward is minus the distance, the way back included."""

    num_symmetries = 8

    def setup(self) -> None:
        """Give every city an edge to every other."""
        if lower_bound(self.config.num_cities) < 2:
            raise ConfigError(f"num_cities: got {self.config.num_cities}, expected 2 or more")
        capacity = upper_bound(self.config.num_cities)
        self.graph = GraphSpec(
            int(capacity), node_features=2, edges=Radius(torch.inf, features=()), position_dim=2
        )
        self.actions = ChooseNode()

    def spawn(self, count: int) -> Entries:
        """Sample cities uniformly in the unit square."""
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        exists = slots < self.sample_int(self.config.num_cities, count).unsqueeze(-1)
        none = torch.full((count,), -1, device=self.device)
        return {
            "place": torch.rand(*exists.shape, 2, generator=self.generator, device=self.device),
            "exists": exists,
            "visited": torch.zeros_like(exists),
            "first": none,
            "current": none.clone(),
            "length": torch.zeros(count, device=self.device),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Go to the chosen city, and back to the first one from the last."""
        has_begun = state["current"] >= 0
        current, first = (torch.where(has_begun, state[name], action) for name in ("current", "first"))
        visited = state["visited"].scatter(-1, action.unsqueeze(-1), True)
        is_last = ~(state["exists"] & ~visited).any(-1)
        there, back = ways(state["place"], current, action, first).unbind(-1)
        length = there + torch.where(is_last, back, 0.0)
        changes = {
            "visited": visited,
            "first": first,
            "current": action,
            "length": state["length"] + length,
        }
        return Transition(changes, reward=-length, terminated=is_last)

    def describe(self, state: TensorDict) -> Entries:
        """Return the places of the cities."""
        return {"x": centred(state["place"]), "pos": state["place"], "node_mask": state["exists"]}

    def observe(self, state: TensorDict) -> Entries:
        """Refer to the first and the current city."""
        nodes = {"first": state["first"], "current": state["current"]}
        return {"step": {"nodes": nodes}, "metrics": {"tour": state["length"]}}

    def mask(self, state: TensorDict) -> Tensor:
        """Allow cities that are not visited yet."""
        return state["exists"] & ~state["visited"]

    def apply_symmetry(self, state: TensorDict, symmetry: Tensor) -> Entries:
        """Reflect and turn the square, in one of eight ways."""
        return {"place": symmetric(state["place"], symmetry)}


def nearest(env: TSPEnv) -> BY_RULE:
    """Return the rule that visits the nearest city that is left, from city 0 on."""

    def policy(root: TensorDictBase) -> TensorDictBase:
        state = root["state"]
        here = at_nodes(state["place"], state["current"].clamp(min=0))
        distance = torch.linalg.vector_norm(state["place"] - here.unsqueeze(1), dim=-1)
        return root.set("action", distance.masked_fill(~env.mask(state), torch.inf).argmin(-1))

    return policy


def two_opt(env: TSPEnv) -> BY_RULE:
    """Return the rule that plans a tour by 2-opt when worlds begin, and then follows it."""
    planned_for, rank = torch.empty(0), torch.empty(0, dtype=torch.int64)

    def policy(root: TensorDictBase) -> TensorDictBase:
        nonlocal planned_for, rank
        state = root["state"]
        if not torch.equal(planned_for, state["place"]):
            planned_for = state["place"].clone()
            rank = plan_tours(state["place"], state["exists"]).argsort(-1)
        ahead = (rank - rank.gather(1, state["current"].clamp(min=0).unsqueeze(-1))) % rank.shape[-1]
        return root.set("action", ahead.masked_fill(~env.mask(state), rank.shape[-1]).argmin(-1))

    return policy


def plan_tours(place: Tensor, exists: Tensor) -> Tensor:
    """Return tours `[B, N]` that no exchange of two edges shortens; absent cities lie at the first one."""
    place = torch.where(exists.unsqueeze(-1), place, place[:, :1])
    distance = torch.cdist(place, place, compute_mode="donot_use_mm_for_euclid_dist")
    tour = nearest_neighbour_tours(distance)
    slots = torch.arange(tour.shape[-1], device=tour.device)
    for _ in range(tour.shape[-1] ** 2):
        along = distance.gather(1, tour.unsqueeze(-1).expand_as(distance))
        pairs = along.gather(2, tour.unsqueeze(1).expand_as(distance))
        after = pairs.roll((-1, -1), (1, 2))
        edge = torch.cat((pairs.diagonal(1, 1, 2), pairs[:, -1:, 0]), 1)
        gain = (edge.unsqueeze(-1) + edge.unsqueeze(-2) - pairs - after).triu(1)
        best, pair = gain.flatten(1).max(-1)
        if not (best > 1e-6).any():
            break
        start, end = (pair // len(slots) + 1).unsqueeze(-1), (pair % len(slots)).unsqueeze(-1)
        is_turned = (slots >= start) & (slots <= end) & (best > 1e-6).unsqueeze(-1)
        tour = tour.gather(1, torch.where(is_turned, start + end - slots, slots))
    return tour


def nearest_neighbour_tours(distance: Tensor) -> Tensor:
    """Return the tours `[B, N]` that go to the nearest city left, from city 0."""
    worlds = torch.arange(len(distance), device=distance.device)
    left = torch.ones(distance.shape[:2], dtype=torch.bool, device=distance.device)
    tour = [torch.zeros_like(worlds)]
    for _ in range(distance.shape[-1] - 1):
        left[worlds, tour[-1]] = False
        tour.append(distance[worlds, tour[-1]].masked_fill(~left, torch.inf).argmin(-1))
    return torch.stack(tour, -1)


BASELINES = {"nearest": nearest, "two_opt": two_opt}
