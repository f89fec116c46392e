"""Vehicle routing: serve all customers by short routes of a vehicle with a capacity."""

from __future__ import annotations

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
from edgewise.problems.config import CVRPConfig
from edgewise.problems.plane import at_nodes, centred, symmetric, way
from edgewise.problems.tsp import BY_RULE


class CVRPEnv(GraphEnv[CVRPConfig]):
    """Choose the next customer, or the depot to load again; the reward is minus the distance.

    Node 0 is the depot. An episode ends when all customers are served and the vehicle is back.
    """

    num_symmetries = 8

    def setup(self) -> None:
        """Join the depot and all customers with each other."""
        if lower_bound(self.config.num_customers) < 1:
            raise ConfigError(f"num_customers: got {self.config.num_customers}, expected 1 or more")
        nodes = int(upper_bound(self.config.num_customers)) + 1
        self.graph = GraphSpec(nodes, 3, edges=Radius(torch.inf, features=()), position_dim=2, node_types=2)
        self.actions = ChooseNode()

    def spawn(self, count: int) -> Entries:
        """Sample places uniformly and demands from 1 to 9, as shares of the capacity."""
        nodes = self.graph.num_nodes
        slots = torch.arange(nodes, device=self.device)
        customers = self.sample_int(self.config.num_customers, count).unsqueeze(-1)
        demand = torch.randint(1, 10, (count, nodes), generator=self.generator, device=self.device)
        depot = torch.zeros(count, dtype=torch.int64, device=self.device)
        return {
            "place": torch.rand(count, nodes, 2, generator=self.generator, device=self.device),
            "demand": torch.where(slots > 0, demand / self.config.capacity, 0.0),
            "exists": slots <= customers,
            "served": (slots == 0).expand(count, -1).clone(),
            "current": depot,
            "left": torch.ones(count, device=self.device),
            "length": torch.zeros(count, device=self.device),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Drive to the chosen node, and serve it, or load again."""
        length = way(state["place"], state["current"], action)
        served = state["served"].scatter(-1, action.unsqueeze(-1), True)
        is_depot = action == 0
        changes = {
            "served": served,
            "current": action,
            "left": torch.where(is_depot, 1.0, state["left"] - at_nodes(state["demand"], action)),
            "length": state["length"] + length,
        }
        is_last = is_depot & ~(state["exists"] & ~served).any(-1)
        return Transition(changes, reward=-length, terminated=is_last)

    def describe(self, state: TensorDict) -> Entries:
        """Return places, demands, and which node is the depot."""
        nodes = torch.zeros_like(state["served"], dtype=torch.int64)
        nodes[:, 0] = 1
        x = torch.cat((centred(state["place"]), state["demand"].unsqueeze(-1)), -1)
        return {"x": x, "pos": state["place"], "node_type": nodes, "node_mask": state["exists"]}

    def observe(self, state: TensorDict) -> Entries:
        """Refer to the current node, and show what is left in the vehicle."""
        step = {"nodes": {"current": state["current"]}, "u": state["left"].unsqueeze(-1)}
        return {"step": step, "metrics": {"length": state["length"]}}

    def mask(self, state: TensorDict) -> Tensor:
        """Allow customers whose demand fits, and the depot unless the vehicle waits there for a customer."""
        fits = state["demand"] <= state["left"].unsqueeze(-1) + 1e-6
        allowed = state["exists"] & ~state["served"] & fits
        allowed[:, 0] = (state["current"] != 0) | ~allowed.any(-1)
        return allowed

    def apply_symmetry(self, state: TensorDict, symmetry: Tensor) -> Entries:
        """Reflect and turn the square, in one of eight ways."""
        return {"place": symmetric(state["place"], symmetry)}


def nearest(env: CVRPEnv) -> BY_RULE:
    """Return the rule that serves the nearest customer that fits, and loads again if none does."""

    def policy(root: TensorDictBase) -> TensorDictBase:
        state = root["state"]
        here = at_nodes(state["place"], state["current"])
        distance = torch.linalg.vector_norm(state["place"] - here.unsqueeze(1), dim=-1)
        distance[:, 0] = distance.amax(-1) + 1
        return root.set("action", distance.masked_fill(~env.mask(state), torch.inf).argmin(-1))

    return policy


def sweep(env: CVRPEnv) -> BY_RULE:
    """Return the rule that serves customers by their angle around the depot, and loads again where needed."""

    def policy(root: TensorDictBase) -> TensorDictBase:
        state = root["state"]
        apart = state["place"] - state["place"][:, :1]
        angle = torch.atan2(apart[..., 1], apart[..., 0])
        allowed, left = env.mask(state), state["exists"] & ~state["served"]
        following = angle.masked_fill(~left, torch.inf).argmin(-1)
        fits = allowed.gather(1, following.unsqueeze(-1)).squeeze(-1)
        return root.set("action", torch.where(fits & left.any(-1), following, 0))

    return policy


BASELINES = {"nearest": nearest, "sweep": sweep}
