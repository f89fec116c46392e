"""Immunisation: remove few nodes of a network so that few pairs of the others stay connected."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.graphs.edges import may_branch_on
from edgewise.problems.config import ImmunisationConfig
from edgewise.problems.random_graphs import SelectionEnv, neighbours_among, rule


class ImmunisationEnv(SelectionEnv[ImmunisationConfig]):
    """Choose a node to remove until a share of all are; the reward is by how much connectivity falls.

    Connectivity is the share of pairs of nodes with a path between them. What remains at the end is a bound
    of how far a disease, a fault or a rumour can spread.
    """

    static_features = 2

    def begin(self, graphs: dict[str, Tensor]) -> Entries:
        """Begin without a removed node."""
        chosen = torch.zeros_like(graphs["exists"])
        found = components(graphs["edge_index"], graphs["edge_mask"], graphs["exists"])
        return {
            **graphs,
            "chosen": chosen,
            "component": found,
            "connected": connectivity(found, graphs["exists"]),
        }

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Remove the chosen node."""
        chosen = state["chosen"].scatter(-1, action.unsqueeze(-1), True)
        left = state["exists"] & ~chosen
        found = components(state["edge_index"], state["edge_mask"], left)
        connected = connectivity(found, state["exists"])
        budget = (self.config.share * state["exists"].sum(-1)).ceil()
        changes = {"chosen": chosen, "component": found, "connected": connected}
        is_last = chosen.sum(-1) >= budget
        return Transition(changes, reward=state["connected"] - connected, terminated=is_last)

    def describe(self, state: TensorDict) -> Entries:
        """Return the graph with degrees, absolute and relative to the largest."""
        degree = state["adjacent"].sum(-1).float()
        most = degree.amax(-1, keepdim=True).clamp(min=1)
        return self.described(state, torch.stack((degree.log1p(), degree / most), -1))

    def observe(self, state: TensorDict) -> Entries:
        """Show degrees among the nodes left, those of neighbours, and the size of each node's component."""
        left, nodes = state["exists"] & ~state["chosen"], state["exists"].sum(-1, keepdim=True)
        degree = left_degrees(state)
        size = sizes(state["component"])
        x = torch.stack((left.float(), degree.log1p(), influence_of(state).log1p(), size / nodes), -1)
        removed = state["chosen"].sum(-1, keepdim=True) / (self.config.share * nodes)
        u = torch.cat((state["connected"].unsqueeze(-1), removed), -1)
        return {"step": {"x": x, "u": u}, "metrics": {"connected": state["connected"]}}

    def mask(self, state: TensorDict) -> Tensor:
        """Allow nodes that are left."""
        return state["exists"] & ~state["chosen"]


def components(edge_index: Tensor, edge_mask: Tensor, left: Tensor) -> Tensor:
    """Return the smallest node of the component of each node, `[B, N]`; N for nodes that are not left."""
    one, other = edge_index.unbind(1)
    joined = edge_mask & left.gather(1, one) & left.gather(1, other)
    nodes = left.shape[1]
    label = torch.arange(nodes, device=left.device).expand_as(left).masked_fill(~left, nodes)
    for _ in range(nodes):  # labels move by one edge or more in every round
        offered = label.gather(1, one).masked_fill(~joined, nodes)
        smaller = label.scatter_reduce(1, other, offered, "amin")
        # Labels are nodes, so that a label's own label is as good: paths are halved in every round.
        jumped = torch.cat((smaller, smaller.new_full((len(left), 1), nodes)), 1).gather(1, smaller)
        # On a GPU, waiting for this answer costs more than another round.
        if may_branch_on(label) and torch.equal(jumped, label):
            break
        label = jumped
    return label


def sizes(component: Tensor) -> Tensor:
    """Return the number of nodes in the component of each node, `[B, N]` float; zero for removed ones."""
    count = component.new_zeros(len(component), component.shape[1] + 1).scatter_add(
        1, component, torch.ones_like(component)
    )
    count[:, -1] = 0
    return count.gather(1, component).float()


def connectivity(component: Tensor, exists: Tensor) -> Tensor:
    """Return the share of all pairs of nodes that a path joins, `[B]`."""
    nodes = exists.sum(-1)
    return (sizes(component) - 1).clamp(min=0).sum(-1) / (nodes * (nodes - 1)).clamp(min=1)


def left_degrees(state: TensorDict) -> Tensor:
    """Return the number of neighbours left of each node that is left, `[B, N]` float."""
    left = state["exists"] & ~state["chosen"]
    return neighbours_among(state, left).masked_fill(~left, 0.0)


def influence_of(state: TensorDict) -> Tensor:
    """Return the collective influence within one step (https://doi.org/10.1038/nature14604), `[B, N]`."""
    further = (left_degrees(state) - 1).clamp(min=0)
    return further * (state["adjacent"].float() @ further.unsqueeze(-1)).squeeze(-1)


def betweenness_of(state: TensorDict) -> Tensor:
    """Return how many shortest paths pass each node, each pair counted as one, `[B, N]` (Brandes)."""
    left = state["exists"] & ~state["chosen"]
    adjacent = (state["adjacent"] & left.unsqueeze(-1) & left.unsqueeze(-2)).float()
    front = torch.diag_embed(left.float())
    paths, fronts = front.clone(), [front]
    while (front := (front @ adjacent).masked_fill(paths > 0, 0.0)).any():
        paths, fronts = paths + front, [*fronts, front]
    passed = torch.zeros_like(paths)
    for nearer, further in zip(fronts[-2::-1], fronts[:0:-1], strict=True):
        share = torch.where(further > 0, (1 + passed) / paths.clamp(min=1), 0.0)
        passed = passed + (share @ adjacent) * nearer
    return passed.sum(1) - passed.diagonal(dim1=1, dim2=2)


Rule = Callable[[TensorDict], TensorDict]


def _by(score: Callable[[TensorDict], Tensor]) -> Callable[[ImmunisationEnv], Rule]:
    """Return the rule that removes the node with the highest score, computed anew in every step."""
    return lambda env: rule(score)  # noqa: ARG005


BASELINES = {"degree": _by(left_degrees), "influence": _by(influence_of), "betweenness": _by(betweenness_of)}
