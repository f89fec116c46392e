"""Sets of nodes with no edge between two of them: all, or those that no node can join."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_SETS = 20_000
"""Above so many maximal sets a graph is not enumerated."""


def independent_sets(adjacency: Tensor) -> Tensor:
    """All independent sets of a graph of at most 16 nodes, the empty one included.

    Args:
        adjacency: `[N, N]` bool, symmetric, no loops.

    Returns:
        `[S, N]` bool, ordered by the number whose bits they are (node 0 is the lowest bit).

    Example:
        >>> independent_sets(torch.tensor([[False, True], [True, False]])).int()
        tensor([[0, 0],
                [1, 0],
                [0, 1]], dtype=torch.int32)
    """
    count = len(adjacency)
    if count > 16:
        raise ValueError(f"all 2^{count} sets of a graph of {count} nodes are too many: use maximal_sets")
    members = (torch.arange(2**count).unsqueeze(-1) >> torch.arange(count) & 1).bool()
    conflicts = (members.float() @ adjacency.float()).bool() & members
    return members[~conflicts.any(-1)]


def maximal_sets(adjacency: Tensor, *, limit: int = MAX_SETS) -> Tensor | None:
    """The independent sets that no node can join, or None where there are more than `limit`.

    Bron and Kerbosch's search with pivots on the complement graph, on integers as bit sets.

    Args:
        adjacency: `[N, N]` bool, symmetric, no loops.
        limit: when to give up.

    Returns:
        `[S, N]` bool, ordered by the number whose bits they are.
    """
    count = len(adjacency)
    everyone = (1 << count) - 1
    apart = [everyone & ~(1 << node) for node in range(count)]
    for node, other in adjacency.nonzero().tolist():
        apart[node] &= ~(1 << other)
    found: list[int] = []
    stack = [(0, everyone, 0)]
    while stack and len(found) <= limit:
        chosen, open_nodes, closed = stack.pop()
        if not open_nodes and not closed:
            found.append(chosen)
            continue
        pivot = max(_bits(open_nodes | closed), key=lambda node: (apart[node] & open_nodes).bit_count())
        for node in _bits(open_nodes & ~apart[pivot]):
            bit = 1 << node
            stack.append((chosen | bit, open_nodes & apart[node], closed & apart[node]))
            open_nodes &= ~bit
            closed |= bit
    if len(found) > limit:
        return None
    return torch.tensor([[chosen >> node & 1 for node in range(count)] for chosen in sorted(found)]).bool()


def _bits(members: int) -> list[int]:
    return [node for node in range(members.bit_length()) if members >> node & 1]
