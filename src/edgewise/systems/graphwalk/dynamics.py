"""The rules of graphwalk as pure functions: moves, neighbours and distances. Imports only torch."""

from __future__ import annotations

import torch
from torch import Tensor


def move(current: Tensor, chosen: Tensor, *, edge_index: Tensor, edge_mask: Tensor) -> Tensor:
    """Move walkers to the chosen node if an edge leads there; otherwise they stay.

    Args:
        current: nodes of the walkers, `[B]` int64.
        chosen: nodes to move to, `[B]` int64.
        edge_index: `[B, 2, E]` int64, sources in row 0 and targets in row 1.
        edge_mask: `[B, E]` bool.

    Returns:
        Nodes of the walkers after the step, `[B]` int64.
    """
    taken = (
        (edge_index[:, 0] == current.unsqueeze(-1)) & (edge_index[:, 1] == chosen.unsqueeze(-1)) & edge_mask
    )
    return torch.where(taken.any(-1), chosen, current)


def neighbours(node: Tensor, *, edge_index: Tensor, edge_mask: Tensor, num_nodes: int) -> Tensor:
    """Return the nodes that an edge leads to from `node` `[B]`, `[B, N]` bool."""
    leaves = (edge_index[:, 0] == node.unsqueeze(-1)) & edge_mask
    count = torch.zeros(len(node), num_nodes, dtype=torch.int32, device=node.device)
    return count.scatter_add(-1, edge_index[:, 1], leaves.int()) > 0


def or_stay(free: Tensor, node: Tensor) -> Tensor:
    """Return `free` `[B, N]`, with `node` `[B]` where nothing is free, as in a dead end."""
    here = torch.zeros_like(free).scatter(-1, node.unsqueeze(-1), True)
    return free | (here & ~free.any(-1, keepdim=True))


def distances(goal: Tensor, *, edge_index: Tensor, edge_mask: Tensor, num_nodes: int) -> Tensor:
    """Compute the distance from every node to `goal` `[B]`, `[B, N]` int64; `num_nodes` without a path.

    Breadth-first search on all graphs at once: each round relaxes all edges. A shortest path has at most
    N - 1 edges, so N - 1 rounds are enough.
    """
    unreached = torch.full((len(goal), num_nodes), num_nodes, device=goal.device)
    distance = unreached.scatter(-1, goal.unsqueeze(-1), 0)
    for _ in range(num_nodes - 1):
        through_edge = (distance.gather(-1, edge_index[:, 1]) + 1).masked_fill(~edge_mask, num_nodes)
        distance = distance.scatter_reduce(-1, edge_index[:, 0], through_edge, "amin")
    return distance
