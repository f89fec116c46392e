"""Conflict graphs: undirected graphs whose adjacent nodes cannot be chosen together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ConflictGraph:
    """An undirected graph whose edges are conflicts: adjacent nodes cannot be active together.

    Args:
        num_nodes: number of nodes N.
        pairs: `(low, high)` of each conflict once, with `low < high`.
    """

    num_nodes: int
    pairs: Pairs

    @cached_property
    def adjacency(self) -> Tensor:
        """Adjacency matrix `[N, N]` bool, symmetric, without self-loops."""
        return adjacency_of(self, self.num_nodes)


def adjacency_of(graph: ConflictGraph, size: int) -> Tensor:
    """Build the adjacency matrix of a graph, padded to `[size, size]` bool."""
    rows = [[False] * size for _ in range(size)]
    for low, high in graph.pairs:
        rows[low][high] = rows[high][low] = True
    return torch.tensor(rows)
