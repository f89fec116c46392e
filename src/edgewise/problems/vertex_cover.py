"""Weighted vertex cover: choose nodes of small weight until every edge has a chosen end."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.problems.config import VertexCoverConfig
from edgewise.problems.random_graphs import SelectionEnv, degrees, neighbours_among, rule


class VertexCoverEnv(SelectionEnv[VertexCoverConfig]):
    """Choose a node that covers an open edge until none is open; the reward is minus its weight."""

    static_features = 3

    def begin(self, graphs: dict[str, Tensor]) -> Entries:
        """Sample weights."""
        exists = graphs["exists"]
        weight = torch.rand(exists.shape, generator=self.generator, device=self.device)
        weight = weight if self.config.weighted else torch.ones_like(weight)
        return {**graphs, "weight": weight, "chosen": torch.zeros_like(exists)}

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Cover the edges of the chosen node."""
        chosen = state["chosen"].scatter(-1, action.unsqueeze(-1), True)
        weight = state["weight"].gather(-1, action.unsqueeze(-1)).squeeze(-1)
        is_covered = open_degrees(state, chosen).sum(-1) == 0
        return Transition({"chosen": chosen}, reward=-weight, terminated=is_covered)

    def describe(self, state: TensorDict) -> Entries:
        """Return the graph with weights and degrees."""
        degree = degrees(state)
        features = (state["weight"], degree.log1p(), state["weight"] / degree.clamp(min=1))
        return self.described(state, torch.stack(features, -1))

    def observe(self, state: TensorDict) -> Entries:
        """Show the open edges of each node, and the weight that covering one of them costs."""
        open_edges = open_degrees(state, state["chosen"])
        price = state["weight"] / open_edges.clamp(min=1)
        around = neighbours_among(state, state["chosen"])
        x = torch.stack((price, open_edges.log1p(), around.log1p(), (open_edges == 1).float()), -1)
        weight = (state["weight"] * state["chosen"]).sum(-1)
        return {"step": {"x": x}, "metrics": {"weight": weight, "nodes": state["chosen"].sum(-1).float()}}

    def mask(self, state: TensorDict) -> Tensor:
        """Allow nodes with an open edge; any node if a graph has no edge."""
        useful = open_degrees(state, state["chosen"]) > 0
        return torch.where(useful.any(-1, keepdim=True), useful, state["exists"])


def open_degrees(state: TensorDict, chosen: Tensor) -> Tensor:
    """Return the edges of each node that no chosen node covers, `[B, N]` float; zero for chosen nodes."""
    return neighbours_among(state, ~chosen & state["exists"]).masked_fill(chosen, 0.0)


def cheapest(env: VertexCoverEnv) -> Callable[[TensorDict], TensorDict]:  # noqa: ARG001
    """Return the rule that chooses the node with the least weight for each open edge."""
    return rule(lambda state: -state["weight"] / open_degrees(state, state["chosen"]).clamp(min=1e-9))


def largest(env: VertexCoverEnv) -> Callable[[TensorDict], TensorDict]:  # noqa: ARG001
    """Return the rule that chooses the node with the most open edges."""
    return rule(lambda state: open_degrees(state, state["chosen"]))


BASELINES = {"cheapest": cheapest, "largest": largest}
