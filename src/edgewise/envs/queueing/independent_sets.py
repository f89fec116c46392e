"""Independent sets of conflict graphs: all, the maximal ones, and the heaviest one of a large graph."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from torch import Tensor

from edgewise.envs.queueing.graphs import ConflictGraph

MAX_SETS = 20_000
"""Above so many maximal sets a graph is not enumerated but solved."""

KEY_BITS = 20
"""Nodes whose places in an order are weighed at once: floats and solvers keep numbers of 2^20 whole."""


def independent_sets(graph: ConflictGraph) -> Tensor:
    """All independent sets of a graph of at most 16 nodes, the empty one included.

    Returns:
        `[S, N]` bool, ordered by the number whose bits they are (node 0 is the lowest bit).
    """
    count = graph.num_nodes
    if count > 16:
        raise ValueError(f"all 2^{count} sets of a graph of {count} nodes are too many: use maximal_sets")
    members = (torch.arange(2**count).unsqueeze(-1) >> torch.arange(count) & 1).bool()
    conflicts = (members.float() @ graph.adjacency.float()).bool() & members
    return members[~conflicts.any(-1)]


def maximal_sets(graph: ConflictGraph, *, limit: int = MAX_SETS) -> Tensor | None:
    """The independent sets that no node can join, or None where there are more than `limit`.

    Bron and Kerbosch's search with pivots on the complement graph, on integers as bit sets.

    Args:
        graph: of any size.
        limit: when to give up.

    Returns:
        `[S, N]` bool, ordered by the number whose bits they are.
    """
    count = graph.num_nodes
    everyone = (1 << count) - 1
    apart = [everyone & ~(1 << node) for node in range(count)]
    for low, high in graph.pairs:
        apart[low] &= ~(1 << high)
        apart[high] &= ~(1 << low)
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


def heaviest_set(graph: ConflictGraph, weight: Tensor, *, order: Tensor, counted: Tensor) -> Tensor:
    """The heaviest independent set of one graph of any size, by mixed-integer programming.

    Of equally heavy sets the first in `order` is taken: the one that does without the last counted node of
    the order if any of them does, then without the last but one, and so on.

    Args:
        graph: of any size.
        weight: `[N]`, whole numbers from zero.
        order: `[N]` int64, the rank of each node in the order.
        counted: `[N]` bool, the nodes the order looks at.

    Returns:
        `[N]` bool.
    """
    objective = weight.double().numpy()
    clauses = _edge_clauses(graph)
    lower, upper = np.zeros(len(objective)), np.ones(len(objective))
    best = _solve(-objective, [clauses], lower, upper)
    reach = LinearConstraint(objective, float(np.round(objective @ best)) - 0.5, np.inf)
    last_first = np.argsort(order.numpy())[::-1]
    last_first = last_first[counted.numpy()[last_first]]
    for start in range(0, len(last_first), KEY_BITS):
        block = last_first[start : start + KEY_BITS]
        key = np.zeros(len(objective))
        key[block] = 2.0 ** np.arange(len(block))[::-1]
        best = _solve(key, [clauses, reach], lower, upper)
        lower[block] = upper[block] = best[block]
    return torch.from_numpy(best > 0.5)


def _edge_clauses(graph: ConflictGraph) -> LinearConstraint:
    """At most one end of every edge."""
    matrix = np.zeros((len(graph.pairs), graph.num_nodes))
    for row, pair in enumerate(graph.pairs):
        matrix[row, pair] = 1.0
    return LinearConstraint(matrix, -np.inf, 1.0)


def _solve(
    cost: np.ndarray, constraints: list[LinearConstraint], lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """The cheapest 0/1 vector under the constraints, `[N]`."""
    kept = [constraint for constraint in constraints if np.atleast_2d(constraint.A).shape[0]]
    result = milp(
        cost,
        integrality=np.ones(len(cost)),
        bounds=Bounds(lower, upper),
        constraints=kept,
        options={"mip_rel_gap": 0.0},
    )
    if result.x is None:
        raise ArithmeticError(f"the solver found no independent set: {result.message}")
    return np.round(result.x)


def uniform_capacity(graph: ConflictGraph) -> float:
    """The largest λ that unit servers can carry at every node: one over the fractional chromatic number.

    Time is shared between independent sets so that every node is active a share λ of it. The shares are a
    linear program whose sets are brought in one by one, the heaviest at the current prices first.

    Example:
        >>> from edgewise.envs.queueing.graphs import conflict_graph
        >>> round(uniform_capacity(conflict_graph("ring5")), 6)
        0.4
    """
    count = graph.num_nodes
    columns = list(np.eye(count))
    clauses = _edge_clauses(graph)
    while True:
        table = np.stack(columns, 1)
        plan = linprog(np.ones(len(columns)), A_ub=-table, b_ub=-np.ones(count))
        prices = -plan.ineqlin.marginals
        entering = _solve(-prices, [clauses], np.zeros(count), np.ones(count))
        if prices @ entering <= 1.0 + 1e-9:
            return float(1.0 / plan.fun)
        columns.append(entering)
