"""An undirected graph whose adjacent nodes cannot be chosen together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ConflictGraph:
    """Nodes, and which of them cannot be active together.

    Args:
        num_nodes: N.
        pairs: `(low, high)` for each conflict, `low < high`, each once.
    """

    num_nodes: int
    pairs: Pairs

    @cached_property
    def adjacency(self) -> Tensor:
        """`[N, N]` bool, symmetric, no loops."""
        return adjacency_of(self, self.num_nodes)


def adjacency_of(graph: ConflictGraph, size: int) -> Tensor:
    """The adjacency of a graph, padded, `[size, size]` bool."""
    rows = [[False] * size for _ in range(size)]
    for low, high in graph.pairs:
        rows[low][high] = rows[high][low] = True
    return torch.tensor(rows)
