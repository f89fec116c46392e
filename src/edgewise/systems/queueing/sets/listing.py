"""Enumerate the independent sets of a graph: all of them, or the maximal ones."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_SETS = 500
"""Default limit on the number of maximal sets; with more, a `SetDiagram` is faster than a list."""


def independent_sets(adjacency: Tensor) -> Tensor:
    """Return all independent sets of a graph of at most 16 nodes, including the empty set.

    Args:
        adjacency: `[N, N]` bool, symmetric, without self-loops.

    Returns:
        `[S, N]` bool, in increasing order of the integers whose bits they are (node 0 is the lowest bit).

    Example:
        >>> independent_sets(torch.tensor([[False, True], [True, False]])).int()
        tensor([[0, 0],
                [1, 0],
                [0, 1]], dtype=torch.int32)
    """
    count = len(adjacency)
    if count > 16:
        raise ValueError(
            f"a graph of {count} nodes has too many sets to enumerate (at most 16 nodes): use maximal_sets"
        )
    members = (torch.arange(2**count).unsqueeze(-1) >> torch.arange(count) & 1).bool()
    conflicts = (members.float() @ adjacency.float()).bool() & members
    return members[~conflicts.any(-1)]


def maximal_sets(adjacency: Tensor, *, limit: int = MAX_SETS) -> Tensor | None:
    """Return the maximal independent sets, or None if there are more than `limit`.

    Uses the algorithm of Bron and Kerbosch with pivots on the complement graph, with integers as bit sets.

    Args:
        adjacency: `[N, N]` bool, symmetric, without self-loops.
        limit: largest number of sets.

    Returns:
        `[S, N]` bool, in increasing order of the integers whose bits they are.
    """
    count = len(adjacency)
    all_nodes = (1 << count) - 1
    non_neighbours = [all_nodes & ~(1 << node) for node in range(count)]
    for node, other in adjacency.nonzero().tolist():
        non_neighbours[node] &= ~(1 << other)
    found: list[int] = []
    stack = [(0, all_nodes, 0)]
    while stack and len(found) <= limit:
        chosen, open_nodes, closed = stack.pop()
        if not open_nodes and not closed:
            found.append(chosen)
            continue
        pivot = max(
            _bits(open_nodes | closed), key=lambda node: (non_neighbours[node] & open_nodes).bit_count()
        )
        for node in _bits(open_nodes & ~non_neighbours[pivot]):
            bit = 1 << node
            stack.append((chosen | bit, open_nodes & non_neighbours[node], closed & non_neighbours[node]))
            open_nodes &= ~bit
            closed |= bit
    if len(found) > limit:
        return None
    return torch.tensor([[chosen >> node & 1 for node in range(count)] for chosen in sorted(found)]).bool()


def _bits(members: int) -> list[int]:
    return [node for node in range(members.bit_length()) if members >> node & 1]
