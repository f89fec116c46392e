"""The heaviest independent set of a conflict graph of any size, and what load a graph can carry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from torch import Tensor

from edgewise.graphs.conflict_graph import ConflictGraph

KEY_BITS = 20
"""Nodes whose places in an order are weighed at once: floats and solvers keep numbers of 2^20 whole."""

SLACK = 1e-6
"""Share of its weight by which one set may fall short of another and still count as heavy, for rounding."""


def heaviest_set(
    graph: ConflictGraph, weights: Sequence[Tensor], *, order: Tensor, counted: Tensor
) -> Tensor:
    """The heaviest independent set of one graph of any size, by mixed-integer programming.

    The first weight decides, then the second, and so on. Of equally heavy sets the first in `order` is taken:
    the one that does without the last counted node of the order if any of them does, then without the last
    but one, and so on.

    Args:
        graph: of any size.
        weights: each `[N]`, numbers from zero.
        order: `[N]` int64, the rank of each node in the order.
        counted: `[N]` bool, the nodes the order looks at.

    Returns:
        `[N]` bool.
    """
    rules = [_edge_clauses(graph)]
    lower, upper = np.zeros(graph.num_nodes), np.ones(graph.num_nodes)
    for weight in weights:
        objective = weight.double().numpy()
        best = _solve(-objective, rules, lower, upper)
        rules.append(_as_heavy(objective, float(objective @ best)))
    last_first = np.argsort(order.numpy())[::-1]
    last_first = last_first[counted.numpy()[last_first]]
    for start in range(0, len(last_first), KEY_BITS):
        block = last_first[start : start + KEY_BITS]
        key = np.zeros(graph.num_nodes)
        key[block] = 2.0 ** np.arange(len(block))[::-1]
        best = _solve(key, rules, lower, upper)
        lower[block] = upper[block] = best[block]
    return torch.from_numpy(best > 0.5)


def _as_heavy(weight: np.ndarray, total: float) -> LinearConstraint:
    """A set weighs no less than `total`; half of one less is less where weights are whole numbers."""
    whole = bool((weight == np.round(weight)).all())
    return LinearConstraint(weight, total - (0.5 if whole else SLACK * max(1.0, total)), np.inf)


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

    Example:
        >>> ring = ConflictGraph(5, ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4)))
        >>> round(uniform_capacity(ring), 6)
        0.4
    """
    return carried_share(graph, [1.0] * graph.num_nodes)


def carried_share(graph: ConflictGraph, rates: Sequence[float]) -> float:
    """How many times these rates, one for each node, unit servers can carry; infinity where all are zero.

    Time is shared between independent sets so that every node is active for its share of it. The shares are a
    linear program whose sets are brought in one by one, the heaviest at the current prices first.
    """
    count, wanted = graph.num_nodes, np.array(rates)
    columns = list(np.eye(count))
    clauses = _edge_clauses(graph)
    while True:
        table = np.stack(columns, 1)
        plan = linprog(np.ones(len(columns)), A_ub=-table, b_ub=-wanted)
        prices = -plan.ineqlin.marginals
        entering = _solve(-prices, [clauses], np.zeros(count), np.ones(count))
        if prices @ entering <= 1.0 + 1e-9:
            return float(1.0 / plan.fun) if plan.fun > 0.0 else np.inf
        columns.append(entering)
