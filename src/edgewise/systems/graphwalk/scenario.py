"""Random walks to be: connected graphs of different sizes, a start and a goal."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.graphwalk import dynamics


def draw_walks(
    num_nodes: Tensor, *, capacity: int, extra_edges: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """One random world for each entry of `num_nodes`.

    Every node but the first is joined to a uniformly drawn earlier one, which connects the graph; then
    `extra_edges` of the other pairs are joined, or all of them where there are fewer. Start and goal are two
    different nodes, drawn uniformly.

    Args:
        num_nodes: `[B]` int64, between 2 and `capacity`.
        capacity: N, room for nodes.
        extra_edges: edges beside those of the tree.
        generator: draws everything.

    Returns:
        `node_mask` `[B, N]`, `edge_index` `[B, 2, E]` (both directions), `edge_mask` `[B, E]`, `current`,
        `goal` and `shortest` (steps from start to goal) `[B]`.
    """
    count, device = len(num_nodes), num_nodes.device
    later, earlier = _pairs(capacity, device)
    tree = _tree(count, capacity, generator, device)
    extra, is_extra = _further_pairs(tree, later, num_nodes, extra_edges=extra_edges, generator=generator)
    pair = torch.cat((tree, extra), -1)
    kept = torch.cat((later[tree] < num_nodes.unsqueeze(-1), is_extra), -1)
    one_way = torch.stack((later[pair], earlier[pair]), 1)
    edge_index, edge_mask = torch.cat((one_way, one_way.flip(1)), -1), torch.cat((kept, kept), -1)
    current, goal = _two_nodes(num_nodes, generator)
    distance = dynamics.distances(goal, edge_index=edge_index, edge_mask=edge_mask, num_nodes=capacity)
    return {
        "node_mask": torch.arange(capacity, device=device) < num_nodes.unsqueeze(-1),
        "edge_index": edge_index,
        "edge_mask": edge_mask,
        "current": current,
        "goal": goal,
        "shortest": distance.gather(-1, current.unsqueeze(-1)).squeeze(-1),
    }


def _pairs(capacity: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """All unordered pairs as `later > earlier`, each `[P]`; pair `(i, j)` stands at `i (i - 1) / 2 + j`."""
    later, earlier = torch.tril_indices(capacity, capacity, -1, device=device)
    return later, earlier


def _tree(count: int, capacity: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Pairs that join each node but the first to an earlier one, `[B, N - 1]`."""
    node = torch.arange(1, capacity, device=device)
    draw = torch.rand(count, capacity - 1, generator=generator, device=device)
    parent = (draw * node).long().minimum(node - 1)
    return node * (node - 1) // 2 + parent


def _further_pairs(
    tree: Tensor, later: Tensor, num_nodes: Tensor, *, extra_edges: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Pairs `[B, K]` that the tree does not join, in random order, and which of them exist `[B, K]`."""
    draw = torch.rand(len(tree), len(later), generator=generator, device=tree.device)
    free = (later < num_nodes.unsqueeze(-1)).scatter(-1, tree, False)
    score, pair = draw.masked_fill(~free, -1.0).topk(min(extra_edges, len(later)), -1)
    return pair, score >= 0


def _two_nodes(num_nodes: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two different nodes of each graph, `[B]` and `[B]`."""
    draw = torch.rand(2, len(num_nodes), generator=generator, device=num_nodes.device)
    first = (draw[0] * num_nodes).long().minimum(num_nodes - 1)
    ahead = 1 + (draw[1] * (num_nodes - 1)).long().minimum(num_nodes - 2)
    return first, (first + ahead) % num_nodes
