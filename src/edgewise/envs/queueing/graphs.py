"""The conflict graphs of a run, padded to one size: the usual shapes, geometric graphs and given ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.envs.queueing.config import GraphName, parse_graph
from edgewise.envs.queueing.dynamics import pack

Pairs = list[tuple[int, int]]

MEAN_NEIGHBOURS = 3.0
"""Neighbours that a node of a geometric graph has on average, borders aside."""


@dataclass(frozen=True)
class ConflictGraphs:
    """G graphs of at most N nodes.

    Attributes:
        names: G names; copies of a geometric graph are numbered.
        adjacency: `[G, N, N]` bool, symmetric, no loops.
        node_mask: `[G, N]` bool.
        position: `[G, N, 2]`, for drawing.
    """

    names: tuple[str, ...]
    adjacency: Tensor
    node_mask: Tensor
    position: Tensor

    def __len__(self) -> int:
        return len(self.names)

    @property
    def num_nodes(self) -> int:
        """N, the size of the largest."""
        return self.node_mask.shape[-1]

    @property
    def neighbours(self) -> Tensor:
        """Each node's neighbours as bit words, `[G, N, W]` int64."""
        return pack(self.adjacency)

    def numbers(self, names: tuple[str, ...]) -> list[int]:
        """Which of the graphs belong to the given names, as `conflict_graphs` takes them."""
        return [number for number, label in enumerate(self.names) if label.split("#")[0] in names]

    def edge_lists(self) -> list[Tensor]:
        """Both directions of every edge, G tensors `[2, E_g]`."""
        return [adjacency.nonzero().T for adjacency in self.adjacency]


def conflict_graphs(names: tuple[str, ...], *, seed: int = 0) -> ConflictGraphs:
    """Build the graphs that `names` call for.

    Args:
        names: as the env card lists them, such as `line8` or `geometric12*20`.
        seed: fixes the geometric graphs; each copy is a graph of its own.

    Example:
        >>> graphs = conflict_graphs(("line3", "ring5"))
        >>> graphs.node_mask.sum(-1)
        tensor([3, 5])
    """
    labels: list[str] = []
    built: list[tuple[Tensor, Pairs]] = []
    for name in names:
        parsed = parse_graph(name)
        for copy in range(parsed.copies):
            labels.append(f"{name}#{copy}" if parsed.copies > 1 else name)
            generator = torch.Generator().manual_seed(seed * 1_000_003 + len(built))
            built.append(_build(parsed, generator))
    size = max(len(position) for position, _ in built)
    adjacency = torch.zeros(len(built), size, size, dtype=torch.bool)
    for graph, (_, pairs) in enumerate(built):
        for low, high in pairs:
            adjacency[graph, low, high] = adjacency[graph, high, low] = True
    mask = torch.stack([torch.arange(size) < len(position) for position, _ in built])
    padded = [torch.nn.functional.pad(position, (0, 0, 0, size - len(position))) for position, _ in built]
    return ConflictGraphs(tuple(labels), adjacency, mask, torch.stack(padded))


def _build(name: GraphName, generator: torch.Generator) -> tuple[Tensor, Pairs]:
    """Positions `[N, 2]` and edges of one graph."""
    count = name.num_nodes
    if name.kind == "line":
        return _on_a_line(count), [(node, node + 1) for node in range(count - 1)]
    if name.kind == "ring":
        return _on_a_circle(count), [(node, (node + 1) % count) for node in range(count)]
    if name.kind == "star":
        around = torch.cat((torch.zeros(1, 2), _on_a_circle(count - 1)))
        return around, [(0, leaf) for leaf in range(1, count)]
    if name.kind == "clique":
        return _on_a_circle(count), _pairs(count)
    if name.kind == "grid":
        return _grid(*name.shape)
    if name.kind == "geometric":
        return _geometric(count, generator)
    return _on_a_circle(count), list(name.edges)


def _pairs(count: int) -> Pairs:
    return [(low, high) for low in range(count) for high in range(low + 1, count)]


def _on_a_line(count: int) -> Tensor:
    return torch.stack((torch.arange(count, dtype=torch.float32), torch.zeros(count)), -1)


def _on_a_circle(count: int) -> Tensor:
    angle = torch.arange(count) * (2.0 * math.pi / max(count, 1))
    return torch.stack((angle.sin(), angle.cos()), -1)


def _grid(rows: int, columns: int) -> tuple[Tensor, Pairs]:
    node = torch.arange(rows * columns)
    position = torch.stack((node % columns, -(node // columns)), -1).float()
    across = [(at, at + 1) for at in range(rows * columns) if (at + 1) % columns]
    down = [(at, at + columns) for at in range((rows - 1) * columns)]
    return position, across + down


def _geometric(count: int, generator: torch.Generator) -> tuple[Tensor, Pairs]:
    position = torch.rand(count, 2, generator=generator)
    radius = math.sqrt(MEAN_NEIGHBOURS / (math.pi * max(count - 1, 1)))
    near = torch.cdist(position, position) <= radius
    return position, [(low, high) for low, high in _pairs(count) if near[low, high]]
