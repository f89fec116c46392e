"""Maximum-weight independent sets of conflict graphs of any size, and the capacity of a graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from torch import Tensor

from edgewise.systems.queueing.sets.conflict_graph import ConflictGraph

KEY_BITS = 20
"""Nodes per tie-breaking objective: weights up to 2^20 are exact in floats and in the solver."""

SLACK = 1e-6
"""Relative tolerance within which two weights count as equal."""


def heaviest_set(
    graph: ConflictGraph, weights: Sequence[Tensor], *, order: Tensor, counted: Tensor
) -> Tensor:
    """Find a maximum-weight independent set of a graph of any size by mixed-integer programming.

    Weights are compared lexicographically: the first weight decides, then the second, and so on. Ties are
    broken by `order`: prefer the set without the last counted node of the order, then without the last but
    one, and so on.

    Args:
        graph: conflict graph of any size.
        weights: non-negative numbers, each `[N]`.
        order: `[N]` int64, the rank of each node in the order.
        counted: `[N]` bool, the nodes that break ties.

    Returns:
        `[N]` bool.
    """
    constraints = [_edge_constraints(graph)]
    lower, upper = np.zeros(graph.num_nodes), np.ones(graph.num_nodes)
    for weight in weights:
        objective = weight.double().numpy()
        best = _solve(-objective, constraints, lower, upper)
        constraints.append(_weight_constraint(objective, float(objective @ best)))
    reverse_order = np.argsort(order.numpy())[::-1]
    reverse_order = reverse_order[counted.numpy()[reverse_order]]
    for start in range(0, len(reverse_order), KEY_BITS):
        block = reverse_order[start : start + KEY_BITS]
        key = np.zeros(graph.num_nodes)
        key[block] = 2.0 ** np.arange(len(block))[::-1]
        best = _solve(key, constraints, lower, upper)
        lower[block] = upper[block] = best[block]
    return torch.from_numpy(best > 0.5)


def heaviest_maximal_set(adjacency: Tensor, weights: Tensor, allowed: Tensor) -> Tensor:
    """Find the maximal independent set of the allowed nodes with the largest weight, exactly, `[N]` bool.

    Args:
        adjacency: `[N, N]` bool, symmetric, no loops.
        weights: `[N]`, of any sign.
        allowed: `[N]` bool.
    """
    nodes = allowed.nonzero().flatten()
    chosen = torch.zeros_like(allowed)
    if len(nodes):
        beside = adjacency[nodes][:, nodes]
        low, high = beside.triu(1).nonzero(as_tuple=True)
        graph = ConflictGraph(len(nodes), tuple(zip(low.tolist(), high.tolist(), strict=True)))
        covered = LinearConstraint(beside.double().numpy() + np.eye(len(nodes)), 1.0, np.inf)
        objective = -weights[nodes].double().numpy()
        best = _solve(
            objective, [_edge_constraints(graph), covered], np.zeros(len(nodes)), np.ones(len(nodes))
        )
        chosen[nodes] = torch.from_numpy(best > 0.5)
    return chosen


def _weight_constraint(weight: np.ndarray, total: float) -> LinearConstraint:
    """Build the constraint that a set weighs at least `total`, up to rounding."""
    integral = bool((weight == np.round(weight)).all())
    return LinearConstraint(weight, total - (0.5 if integral else SLACK * max(1.0, total)), np.inf)


def _edge_constraints(graph: ConflictGraph) -> LinearConstraint:
    """Build the constraint that a set has at most one end of every edge."""
    matrix = np.zeros((len(graph.pairs), graph.num_nodes))
    for row, pair in enumerate(graph.pairs):
        matrix[row, pair] = 1.0
    return LinearConstraint(matrix, -np.inf, 1.0)


def _solve(
    cost: np.ndarray, constraints: list[LinearConstraint], lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Return the 0/1 vector `[N]` of minimal cost under the constraints."""
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
    """Compute the largest rate λ that unit servers can carry at every node.

    It is one over the fractional chromatic number.

    Example:
        >>> ring = ConflictGraph(5, ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4)))
        >>> round(uniform_capacity(ring), 6)
        0.4
    """
    return carried_share(graph, [1.0] * graph.num_nodes)


def carried_share(graph: ConflictGraph, rates: Sequence[float]) -> float:
    """Compute the largest factor by which unit servers can carry these rates; infinity if all are zero.

    Time is shared between independent sets so that every node is active often enough. The shares solve a
    linear program by column generation: each round adds a maximum-weight set at the current dual prices.

    Args:
        graph: conflict graph of N nodes.
        rates: one per node.
    """
    count, wanted = graph.num_nodes, np.array(rates)
    columns = list(np.eye(count))
    on_edges = _edge_constraints(graph)
    while True:
        table = np.stack(columns, 1)
        plan = linprog(np.ones(len(columns)), A_ub=-table, b_ub=-wanted)
        prices = -plan.ineqlin.marginals
        entering = _solve(-prices, [on_edges], np.zeros(count), np.ones(count))
        if prices @ entering <= 1.0 + 1e-9:
            return float(1.0 / plan.fun) if plan.fun > 0.0 else np.inf
        columns.append(entering)
