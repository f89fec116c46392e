"""Conflict graphs by name: common shapes, random graphs and explicit edge lists, padded to one size."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from edgewise.systems.queueing.config import GraphName, parse_graph
from edgewise.systems.queueing.sets.bits import pack
from edgewise.systems.queueing.sets.conflict_graph import ConflictGraph, adjacency_of

MEAN_NEIGHBOURS = 3.0
"""Mean degree of a geometric graph, ignoring its border."""

ATTACHMENTS = 2
"""Edges of each new node in preferential attachment."""


@dataclass(frozen=True)
class ConflictGraphs:
    """G named graphs; tensors are padded to the N nodes of the largest."""

    names: tuple[str, ...]
    graphs: tuple[ConflictGraph, ...]

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def num_nodes(self) -> int:
        """N."""
        return max(graph.num_nodes for graph in self.graphs)

    @cached_property
    def adjacency(self) -> Tensor:
        """`[G, N, N]` bool."""
        return torch.stack([adjacency_of(graph, self.num_nodes) for graph in self.graphs])

    @property
    def node_mask(self) -> Tensor:
        """`[G, N]` bool."""
        sizes = torch.tensor([graph.num_nodes for graph in self.graphs])
        return torch.arange(self.num_nodes) < sizes.unsqueeze(-1)

    @property
    def importance(self) -> Tensor:
        """Degree of each node, at least 1, over their mean in its graph, `[G, N]` float; padding is zero."""
        degree = self.adjacency.sum(-1).clamp(min=1) * self.node_mask
        return degree / (degree.sum(-1, keepdim=True) / self.node_mask.sum(-1, keepdim=True))

    @property
    def neighbours(self) -> Tensor:
        """Neighbours of each node as bit words, `[G, N, W]` int64."""
        return pack(self.adjacency)

    def numbers(self, names: tuple[str, ...]) -> list[int]:
        """Return the indices of the graphs with the given names, all copies included."""
        return [number for number, label in enumerate(self.names) if label.split("#")[0] in names]


def conflict_graph(name: str, *, seed: int = 0) -> ConflictGraph:
    """Build one graph by its name, the first of several copies.

    Example:
        >>> conflict_graph("ring4").pairs
        ((0, 1), (1, 2), (2, 3), (0, 3))
    """
    return conflict_graphs((name,), seed=seed).graphs[0]


def conflict_graphs(names: tuple[str, ...], *, seed: int = 0) -> ConflictGraphs:
    """Build graphs by their names.

    Args:
        names: graph names of the env card, such as `line8` or `geometric12*20`.
        seed: random seed of the random graphs; copies differ from each other.

    Example:
        >>> conflict_graphs(("line3", "ring5")).node_mask.sum(-1)
        tensor([3, 5])
    """
    labels: list[str] = []
    graphs: list[ConflictGraph] = []
    for name in names:
        parsed = parse_graph(name)
        for copy in range(parsed.copies):
            labels.append(f"{name}#{copy}" if parsed.copies > 1 else name)
            graphs.append(_build(parsed, random.Random(seed * 1_000_003 + len(graphs))))
    return ConflictGraphs(tuple(labels), tuple(graphs))


def _build(name: GraphName, draw: random.Random) -> ConflictGraph:
    count = name.num_nodes
    nodes = range(count)
    match name.kind:
        case "line":
            pairs = [(node, node + 1) for node in nodes[:-1]]
        case "ring":
            pairs = [*((node, node + 1) for node in nodes[:-1]), (0, count - 1)]
        case "star":
            pairs = [(0, leaf) for leaf in nodes[1:]]
        case "clique":
            pairs = [(low, high) for low in nodes for high in nodes[low + 1 :]]
        case "grid":
            columns = name.shape[1]
            across = [(node, node + 1) for node in nodes if (node + 1) % columns]
            pairs = across + [(node, node + columns) for node in nodes[:-columns]]
        case "tree":
            pairs = [((node - 1) // 2, node) for node in nodes[1:]]
        case "bipartite":
            first = name.shape[0]
            pairs = [(left, right) for left in range(first) for right in nodes[first:]]
        case "barabasi":
            pairs = _attached_pairs(count, draw)
        case "geometric":
            pairs = _close_pairs(count, draw)
        case "edges":
            pairs = list(name.edges)
    return ConflictGraph(count, tuple(pairs))


def _close_pairs(count: int, draw: random.Random) -> list[tuple[int, int]]:
    """Sample points in a unit square and return the pairs within a radius."""
    points = [(draw.random(), draw.random()) for _ in range(count)]
    radius = math.sqrt(MEAN_NEIGHBOURS / (math.pi * max(count - 1, 1)))
    return [
        (low, high)
        for low in range(count)
        for high in range(low + 1, count)
        if math.dist(points[low], points[high]) <= radius
    ]


def _attached_pairs(count: int, draw: random.Random) -> list[tuple[int, int]]:
    """Sample a graph by preferential attachment (Barabási and Albert, 1999)."""
    pairs = [(0, 1), (0, 2), (1, 2)]
    ends = [node for pair in pairs for node in pair]
    for node in range(3, count):
        chosen: set[int] = set()
        while len(chosen) < ATTACHMENTS:
            chosen.add(draw.choice(ends))
        for other in sorted(chosen):
            pairs.append((other, node))
            ends += [other, node]
    return pairs
