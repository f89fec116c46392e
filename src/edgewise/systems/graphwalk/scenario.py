"""Sample worlds: connected random graphs of different sizes, or given ones, each with a start and a goal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from torch import Tensor

from edgewise.config.errors import DataError
from edgewise.graphs.datasets import GraphInstances
from edgewise.systems.graphwalk import dynamics

GRAPH_ENTRIES = ("node_mask", "edge_index", "edge_mask")
"""Entries of a state that are the graph."""


def sample_walks(
    num_nodes: Tensor, *, capacity: int, extra_edges: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """Sample a random world for each entry of `num_nodes`.

    Every node but the first is joined to a uniformly sampled earlier one, which makes a spanning tree. Then
    `extra_edges` of the other pairs are joined, or all of them if there are fewer. Start and goal are two
    different nodes, sampled uniformly.

    Args:
        num_nodes: nodes of each graph, `[B]` int64, between 2 and `capacity`.
        capacity: number of node slots N.
        extra_edges: edges in addition to the spanning tree.
        generator: source of randomness.

    Returns:
        `node_mask` `[B, N]`, `edge_index` `[B, 2, E]` (both directions), `edge_mask` `[B, E]`, `current`,
        `goal` and `shortest` (distance from start to goal) `[B]`.
    """
    count, device = len(num_nodes), num_nodes.device
    later, earlier = _pairs(capacity, device)
    tree = _spanning_tree(count, capacity, generator, device)
    extra, is_extra = _extra_pairs(tree, later, num_nodes, extra_edges=extra_edges, generator=generator)
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


def given_distances(given: GraphInstances) -> Tensor:
    """Compute the distances in given graphs, `[K, N, N]` int16 from rows to columns; -1 without a path.

    Raises:
        DataError: a graph has no two nodes with a path between them.
    """
    num_nodes = given.spec.num_nodes
    found = torch.full((len(given), num_nodes, num_nodes), -1, dtype=torch.int16)
    for number, label in enumerate(given.labels):
        source, target = given.graphs["edge_index"][number][:, given.graphs["edge_mask"][number]].numpy()
        links = csr_array((np.ones(len(source)), (source, target)), shape=(num_nodes, num_nodes))
        distance = shortest_path(links, unweighted=True)
        found[number] = torch.from_numpy(np.where(np.isfinite(distance), distance, -1)).short()
        if not (found[number] > 0).any():
            raise DataError(f"{label}: no edge leads from one node to another, so there is no walk")
    return found


def sample_given_walks(
    graphs: Mapping[str, Tensor], distance: Tensor, *, count: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """Sample `count` worlds: a given graph each, a start, and a goal that can be reached from it.

    Args:
        graphs: `node_mask` `[K, N]`, `edge_index` `[K, 2, E]`, `edge_mask` `[K, E]`.
        distance: from `given_distances`.
        count: number of worlds B.
        generator: source of randomness.

    Returns:
        The entries of `sample_walks`.
    """
    device = distance.device
    which = torch.randint(len(distance), (count,), generator=generator, device=device)
    reachable = distance[which] > 0
    uniform = torch.rand(2, count, reachable.shape[-1], generator=generator, device=device)
    current = uniform[0].masked_fill(~reachable.any(-1), -1.0).argmax(-1)
    ends = reachable.gather(1, current.view(-1, 1, 1).expand(-1, 1, reachable.shape[-1])).squeeze(1)
    goal = uniform[1].masked_fill(~ends, -1.0).argmax(-1)
    chosen = {name: graphs[name][which] for name in GRAPH_ENTRIES}
    return {**chosen, "current": current, "goal": goal, "shortest": distance[which, current, goal].long()}


def _pairs(capacity: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return all pairs of nodes, `later > earlier`, `[P]` each; pair `(i, j)` is at `i (i - 1) / 2 + j`."""
    later, earlier = torch.tril_indices(capacity, capacity, -1, device=device)
    return later, earlier


def _spanning_tree(count: int, capacity: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Sample a spanning tree: indices of pairs that join each node to an earlier one, `[B, N - 1]`."""
    node = torch.arange(1, capacity, device=device)
    uniform = torch.rand(count, capacity - 1, generator=generator, device=device)
    parent = (uniform * node).long().minimum(node - 1)
    return node * (node - 1) // 2 + parent


def _extra_pairs(
    tree: Tensor, later: Tensor, num_nodes: Tensor, *, extra_edges: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Sample pairs `[B, K]` outside of the tree; return their indices and which of them exist `[B, K]`."""
    uniform = torch.rand(len(tree), len(later), generator=generator, device=tree.device)
    free = (later < num_nodes.unsqueeze(-1)).scatter(-1, tree, False)
    score, pair = uniform.masked_fill(~free, -1.0).topk(min(extra_edges, len(later)), -1)
    return pair, score >= 0


def _two_nodes(num_nodes: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sample two different nodes of each graph, `[B]` and `[B]`."""
    uniform = torch.rand(2, len(num_nodes), generator=generator, device=num_nodes.device)
    first = (uniform[0] * num_nodes).long().minimum(num_nodes - 1)
    offset = 1 + (uniform[1] * (num_nodes - 1)).long().minimum(num_nodes - 2)
    return first, (first + offset) % num_nodes
