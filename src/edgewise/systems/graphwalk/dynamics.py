"""The rules of graphwalk: who neighbours whom, what a step does, how far it is. Torch alone."""

from __future__ import annotations

import torch
from torch import Tensor


def move(current: Tensor, chosen: Tensor, *, edge_index: Tensor, edge_mask: Tensor) -> Tensor:
    """Where the walkers stand after a step: at the chosen node, or where they were if no edge leads there.

    Args:
        current: `[B]` int64.
        chosen: `[B]` int64.
        edge_index: `[B, 2, E]` int64, row 0 leads to row 1.
        edge_mask: `[B, E]` bool.
    """
    taken = (
        (edge_index[:, 0] == current.unsqueeze(-1)) & (edge_index[:, 1] == chosen.unsqueeze(-1)) & edge_mask
    )
    return torch.where(taken.any(-1), chosen, current)


def neighbours(node: Tensor, *, edge_index: Tensor, edge_mask: Tensor, num_nodes: int) -> Tensor:
    """Which nodes an edge leads to from `node` `[B]`, `[B, N]` bool."""
    leads = (edge_index[:, 0] == node.unsqueeze(-1)) & edge_mask
    edges = torch.zeros(len(node), num_nodes, dtype=torch.int32, device=node.device)
    return edges.scatter_add(-1, edge_index[:, 1], leads.int()) > 0


def distances(goal: Tensor, *, edge_index: Tensor, edge_mask: Tensor, num_nodes: int) -> Tensor:
    """The fewest steps from every node to `goal` `[B]`, `[B, N]` int64; `num_nodes` where there is no way.

    Breadth first: every round, each node learns from its neighbours; after N - 1 rounds nothing can change.
    """
    far = torch.full((len(goal), num_nodes), num_nodes, device=goal.device)
    distance = far.scatter(-1, goal.unsqueeze(-1), 0)
    for _ in range(num_nodes - 1):
        onward = (distance.gather(-1, edge_index[:, 1]) + 1).masked_fill(~edge_mask, num_nodes)
        distance = distance.scatter_reduce(-1, edge_index[:, 0], onward, "amin")
    return distance
