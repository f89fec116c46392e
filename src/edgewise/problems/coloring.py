"""Graph colouring: few colours, neighbours of different ones."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.problems.config import ColoringConfig
from edgewise.problems.random_graphs import SelectionEnv, degrees, neighbours_among, rule


class ColoringEnv(SelectionEnv[ColoringConfig]):
    """Choose the next node; it gets the smallest colour that fits, and each new colour costs 1."""

    def begin(self, graphs: dict[str, Tensor]) -> Entries:
        """Begin without colours."""
        return {**graphs, "colour": torch.full_like(graphs["exists"], -1, dtype=torch.int64)}

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Give the chosen node the smallest colour that fits."""
        chosen = action.unsqueeze(-1)
        fitting = smallest_fitting(state).gather(-1, chosen)
        cost = (fitting >= num_colours(state).unsqueeze(-1)).squeeze(-1)
        colour = state["colour"].scatter(-1, chosen, fitting)
        is_done = ((colour >= 0) | ~state["exists"]).all(-1)
        return Transition({"colour": colour}, reward=-cost.float(), terminated=is_done)

    def describe(self, state: TensorDict) -> Entries:
        """Return the graph with degrees."""
        return self.described(state, degrees(state).log1p().unsqueeze(-1))

    def observe(self, state: TensorDict) -> Entries:
        """Show the colours around each node, its open neighbours, and whether it needs a new colour."""
        is_open = self.mask(state)
        needs_new = is_open & (smallest_fitting(state) >= num_colours(state).unsqueeze(-1))
        around = neighbours_among(state, is_open)
        x = torch.stack((needs_new.float(), saturation(state).log1p(), around.log1p()), -1)
        return {"step": {"x": x}, "metrics": {"colours": num_colours(state).float()}}

    def mask(self, state: TensorDict) -> Tensor:
        """Allow nodes without a colour."""
        return state["exists"] & (state["colour"] < 0)


def used_colours(state: TensorDict) -> Tensor:
    """Return which colours the neighbours of each node have, `[B, N, N]` bool, node first."""
    colour = torch.nn.functional.one_hot(state["colour"] + 1, state["colour"].shape[-1] + 1)[..., 1:]
    return state["adjacent"].float() @ colour.float() > 0


def smallest_fitting(state: TensorDict) -> Tensor:
    """Return the smallest colour that no neighbour has, `[B, N]`; a node has fewer than N neighbours."""
    return used_colours(state).logical_not().float().argmax(-1)


def saturation(state: TensorDict) -> Tensor:
    """Return the number of different colours among the neighbours of each node, `[B, N]` float."""
    return used_colours(state).sum(-1).float()


def num_colours(state: TensorDict) -> Tensor:
    """Return the number of colours in use, `[B]`."""
    return state["colour"].amax(-1) + 1


Rule = Callable[[TensorDict], TensorDict]


def largest_first(env: ColoringEnv) -> Rule:  # noqa: ARG001
    """Return the rule that colours nodes in the order of their degree, largest first."""
    return rule(degrees)


def dsatur(env: ColoringEnv) -> Rule:
    """Return DSATUR (https://doi.org/10.1145/359094.359101): most colours around first, then most open
    neighbours.
    """
    nodes = env.graph.num_nodes
    return rule(lambda state: saturation(state) * nodes + neighbours_among(state, env.mask(state)))


BASELINES = {"largest_first": largest_first, "dsatur": dsatur}
