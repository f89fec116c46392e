"""The largest independent set: choose as many nodes as possible, no two of them neighbours."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.problems.config import IndependentSetConfig
from edgewise.problems.random_graphs import SelectionEnv, degrees, neighbours_among, rule


class IndependentSetEnv(SelectionEnv[IndependentSetConfig]):
    """Choose a node that is no neighbour of a chosen one until none is left; each one earns 1."""

    def begin(self, graphs: dict[str, Tensor]) -> Entries:
        """Begin without a chosen node."""
        return {**graphs, "chosen": torch.zeros_like(graphs["exists"])}

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Take the chosen node, which excludes its neighbours."""
        chosen = state["chosen"].scatter(-1, action.unsqueeze(-1), True)
        is_full = ~free(state, chosen).any(-1)
        reward = torch.ones(len(action), device=action.device)
        return Transition({"chosen": chosen}, reward=reward, terminated=is_full)

    def describe(self, state: TensorDict) -> Entries:
        """Return the graph with degrees."""
        return self.described(state, degrees(state).log1p().unsqueeze(-1))

    def observe(self, state: TensorDict) -> Entries:
        """Show the free neighbours of each free node, and how many neighbours those have."""
        left = free(state, state["chosen"])
        rivals = neighbours_among(state, left).masked_fill(~left, 0.0)
        around = (state["adjacent"].float() @ rivals.unsqueeze(-1)).squeeze(-1)
        x = torch.stack((left.float(), rivals.log1p(), (around / rivals.clamp(min=1)).log1p()), -1)
        return {"step": {"x": x}, "metrics": {"nodes": state["chosen"].sum(-1).float()}}

    def mask(self, state: TensorDict) -> Tensor:
        """Allow free nodes."""
        return free(state, state["chosen"])


def free(state: TensorDict, chosen: Tensor) -> Tensor:
    """Return the nodes that are neither chosen nor a neighbour of a chosen one, `[B, N]` bool."""
    return state["exists"] & ~chosen & (neighbours_among(state, chosen) == 0)


def fewest_rivals(env: IndependentSetEnv) -> Callable[[TensorDict], TensorDict]:  # noqa: ARG001
    """Return the rule that chooses the node with the fewest free neighbours."""
    return rule(lambda state: -neighbours_among(state, free(state, state["chosen"])))


BASELINES = {"fewest_rivals": fewest_rivals}
