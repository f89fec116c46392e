"""Vehicle routing with time windows: every customer must be served within its window."""

from __future__ import annotations

from dataclasses import replace

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.ranges import upper_bound
from edgewise.envs.transition import Transition
from edgewise.problems.config import CVRPTWConfig
from edgewise.problems.cvrp import CVRPEnv
from edgewise.problems.plane import at_nodes, way
from edgewise.problems.tsp import BY_RULE

SQUARE = 2**0.5
"""The longest way in the unit square."""


class CVRPTWEnv(CVRPEnv, GraphEnv[CVRPTWConfig]):
    """Vehicle routing in which a vehicle waits for a window to open and may not come after it has closed.

    Every route begins at time zero, as if each had a vehicle of its own. Every customer can be served by a
    route of its own, so that every instance has a solution.
    """

    config: CVRPTWConfig

    def setup(self) -> None:
        """Add the windows to the features."""
        super().setup()
        config = self.config
        needed = upper_bound(config.window) + 2 * SQUARE + config.service
        if config.horizon < needed:
            raise ConfigError(
                f"horizon: got {config.horizon:g}, expected {needed:.3g} or more: the way to a customer and "
                "back, its window and its service"
            )
        self.graph = replace(self.graph, node_features=5)

    def spawn(self, count: int) -> Entries:
        """Sample windows so that each customer can be reached in time and left in time."""
        state = dict(super().spawn(count).items())
        home = torch.linalg.vector_norm(state["place"] - state["place"][:, :1], dim=-1)
        window = self.sample_float(self.config.window, home.numel()).view_as(home)
        latest = self.config.horizon - self.config.service - home - window
        share = torch.rand(home.shape, generator=self.generator, device=self.device)
        opens = home + share * (latest - home)
        is_depot = torch.arange(home.shape[1], device=self.device) == 0
        return {
            **state,
            "opens": opens.masked_fill(is_depot, 0.0),
            "closes": (opens + window).masked_fill(is_depot, self.config.horizon),
            "time": torch.zeros(count, device=self.device),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Drive to the chosen node, wait until its window opens, and serve it."""
        moved = super().advance(state, action)
        arrival = state["time"] + way(state["place"], state["current"], action)
        begin = torch.maximum(arrival, at_nodes(state["opens"], action))
        time = torch.where(action == 0, 0.0, begin + self.config.service)
        return replace(moved, state={**dict(moved.state.items()), "time": time})

    def describe(self, state: TensorDict) -> Entries:
        """Add when windows open and close."""
        graph = dict(super().describe(state).items())
        windows = torch.stack((state["opens"], state["closes"]), -1) / self.config.horizon
        return {**graph, "x": torch.cat((graph["x"], windows), -1)}

    def observe(self, state: TensorDict) -> Entries:
        """Show the time, and how long each customer could wait, or the vehicle for it."""
        seen = dict(super().observe(state).items())
        arrival = arrivals(state)
        x = torch.stack((state["closes"] - arrival, (state["opens"] - arrival).clamp(min=0)), -1)
        u = torch.stack((state["left"], state["time"] / self.config.horizon), -1)
        return {**seen, "step": {**seen["step"], "x": x, "u": u}}

    def mask(self, state: TensorDict) -> Tensor:
        """Allow customers whose window is still open when the vehicle arrives."""
        in_time = (arrivals(state) <= state["closes"] + 1e-6) & super().mask(state)
        in_time[:, 0] = (state["current"] != 0) | ~in_time[:, 1:].any(-1)
        return in_time


def arrivals(state: TensorDict) -> Tensor:
    """Return when the vehicle would arrive at each node, `[B, N]`."""
    here = at_nodes(state["place"], state["current"])
    return state["time"].unsqueeze(-1) + torch.linalg.vector_norm(state["place"] - here.unsqueeze(1), dim=-1)


def earliest_close(env: CVRPTWEnv) -> BY_RULE:
    """Return the rule that serves the customer whose window closes first, of those that can be reached."""

    def policy(root):  # type: ignore[no-untyped-def]
        state = root["state"]
        closes = state["closes"].clone()
        closes[:, 0] = torch.finfo(closes.dtype).max
        return root.set("action", closes.masked_fill(~env.mask(state), torch.inf).argmin(-1))

    return policy


def nearest_in_time(env: CVRPTWEnv) -> BY_RULE:
    """Return the rule that serves the customer whose service can begin first."""

    def policy(root):  # type: ignore[no-untyped-def]
        state = root["state"]
        begin = torch.maximum(arrivals(state), state["opens"])
        begin[:, 0] = torch.finfo(begin.dtype).max
        return root.set("action", begin.masked_fill(~env.mask(state), torch.inf).argmin(-1))

    return policy


BASELINES = {"nearest_in_time": nearest_in_time, "earliest_close": earliest_close}
