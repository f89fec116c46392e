"""Decision diagrams of independent sets: every set of a graph is a path through layers of states.

Nodes are decided one after another. How a set can go on depends only on the decided nodes that still have
undecided neighbours, the frontier. Sets with the same frontier share a state, so a line of any length has
three states per layer although its sets are too many to list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

MAX_STATES = 16_384
"""Default limit on the states of one layer."""

MAX_FRONTIER = 30
"""Largest frontier: two bits per node fit into an int64."""

OUT, IN, BARRED = 0, 1, 2
"""Branches of a state: leave the node out, take it, or skip it because it is not allowed."""

_NEEDY, _COVERED, _MEMBER = 0, 1, 2

Neighbours = Sequence[set[int]]


@dataclass(frozen=True)
class SetDiagram:
    """A layered decision diagram of N nodes. Layer 0 and the end after layer N - 1 have one state each.

    Attributes:
        order: the node that each layer decides.
        layers: `[S, 3]` int64 per layer: the state of the next layer after `OUT`, `IN` and `BARRED`, or the
            number of its states if no set goes on there.
    """

    order: tuple[int, ...]
    layers: tuple[np.ndarray, ...]

    @property
    def width(self) -> int:
        """Largest number of states of a layer."""
        return max(map(len, self.layers), default=1)


def set_diagram(adjacency: Tensor, *, maximal: bool = True, limit: int = MAX_STATES) -> SetDiagram | None:
    """Build the diagram of the independent sets of a graph, or None if a layer has more than `limit` states.

    Args:
        adjacency: `[N, N]` bool, symmetric, without self-loops.
        maximal: whether a node that is left out needs a neighbour in the set; barred nodes do not.
        limit: largest number of states of a layer.

    Example:
        >>> import torch
        >>> line = torch.ones(100, 100).bool().triu(1) & ~torch.ones(100, 100).bool().triu(2)
        >>> set_diagram(line | line.T).width
        3
    """
    neighbours = [set(row.nonzero().flatten().tolist()) for row in adjacency]
    order = narrow_order(neighbours)
    frontier: list[int] = []
    states, decided, layers = np.zeros((1, 0), dtype=np.int8), set[int](), []
    for node in order:
        decided.add(node)
        beside = [place for place, other in enumerate(frontier) if other in neighbours[node]]
        frontier.append(node)
        stays = np.array([bool(neighbours[other] - decided) for other in frontier])
        after, possible = _branches(states, beside, maximal=maximal)
        possible &= (after[:, ~stays] != _NEEDY).all(1)
        after = after[:, stays]
        frontier = [other for other, kept in zip(frontier, stays, strict=True) if kept]
        if len(frontier) > MAX_FRONTIER:
            return None
        code = after.astype(np.int64) @ (4 ** np.arange(len(frontier), dtype=np.int64))
        _, first, place = np.unique(code[possible], return_index=True, return_inverse=True)
        if len(first) > limit:
            return None
        child = np.full(len(possible), len(first))
        child[possible] = place
        layers.append(child.reshape(3, -1).T)
        states = after[possible][first]
    return SetDiagram(tuple(order), tuple(_reduced(layers)))


def _reduced(layers: list[np.ndarray]) -> list[np.ndarray]:
    """Merge states from which the same sets go on, and drop those from which none does."""
    found: list[np.ndarray] = []
    merged = np.array([0, 1])
    for layer in reversed(layers):
        children, none = merged[layer], merged[-1]
        alive = (children != none).any(1)
        kept, place = np.unique(children[alive], axis=0, return_inverse=True)
        merged = np.full(len(layer) + 1, len(kept))
        merged[:-1][alive] = place.reshape(-1)
        found.insert(0, kept)
    return found


def _branches(states: np.ndarray, beside: list[int], *, maximal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the frontiers after each branch `[3 * S, F + 1]`, and which branches are possible `[3 * S]`."""
    blocked = (states[:, beside] == _MEMBER).any(1)
    taken = states.copy()
    taken[:, beside] = np.maximum(taken[:, beside], _COVERED)
    left_out = np.where(blocked, _COVERED, _NEEDY if maximal else _COVERED)
    rows = [
        np.column_stack((states, left_out)),
        np.column_stack((taken, np.full(len(states), _MEMBER))),
        np.column_stack((states, np.full(len(states), _COVERED))),
    ]
    always = np.ones_like(blocked)
    return np.concatenate(rows).astype(np.int8), np.concatenate((always, ~blocked, always))


def narrow_order(neighbours: Neighbours) -> list[int]:
    """Return an order of the nodes with small frontiers: the given order, or one of several greedy ones."""
    count = len(neighbours)
    starts = sorted(range(count), key=lambda node: (len(neighbours[node]), node))[: max(2, 800 // count)]
    return min(_orders(neighbours, starts), key=lambda order: _cost(order, neighbours))


def _orders(neighbours: Neighbours, starts: list[int]) -> Iterator[list[int]]:
    yield list(range(len(neighbours)))
    for start in starts:
        yield _greedy_order(neighbours, start, recency=min)
        yield _greedy_order(neighbours, start, recency=lambda places: -max(places))


def _cost(order: list[int], neighbours: Neighbours) -> float:
    """Estimate the states of all layers: three for each node of the frontier, two thirds for each edge in it.

    A node is in the frontier until its last neighbour is decided.
    """
    place = {node: number for number, node in enumerate(order)}
    leaves = {
        node: max([here, *(place[other] for other in neighbours[node])]) for node, here in place.items()
    }
    growth = np.zeros(len(order) + 1)
    for node, here in place.items():
        growth[here] += np.log(3)
        growth[leaves[node]] -= np.log(3)
        for other in neighbours[node]:
            last = min(leaves[node], leaves[other])
            if place[other] < here < last:
                growth[here] += np.log(2 / 3)
                growth[last] -= np.log(2 / 3)
    return float(np.exp(growth.cumsum()).sum())


def _greedy_order(neighbours: Neighbours, start: int, *, recency: Callable[[list[int]], int]) -> list[int]:
    """Decide next the node that keeps the frontier smallest; `recency` breaks ties by decided neighbours."""
    count = len(neighbours)
    place: dict[int, int] = {}
    left = [len(each) for each in neighbours]
    frontier: set[int] = set()

    def cost(node: int) -> tuple[int, int, int]:
        decided = [other for other in neighbours[node] if other in place]
        closes = sum(left[other] == 1 for other in decided)
        return (left[node] > 0) - closes, recency([place[other] for other in decided] or [0]), node

    node = start
    while True:
        place[node] = len(place)
        for other in neighbours[node]:
            left[other] -= 1
        frontier = {other for other in frontier | {node} if left[other]}
        if len(place) == count:
            return list(place)
        open_nodes = {other for each in frontier for other in neighbours[each] if other not in place}
        node = min(open_nodes or set(range(count)) - place.keys(), key=cost)
