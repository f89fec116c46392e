"""Optima of covers, independent sets, cuts and colourings by integer programming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgewise.benchmark.solvers.programs import NAME, Program, Values
from edgewise.benchmark.task import Solved, starts
from edgewise.evaluation.instances import Instances

Edges = NDArray[np.int64]
World = Callable[[Edges, int, Any], tuple[float, bool] | None]
"""Solves one graph, given by edges `[E, 2]`, the number of nodes and the state of its world."""


def _each(instances: Instances, solve: World) -> Solved | None:
    found = []
    for state in starts(instances):
        edges = state["adjacent"].triu(1).nonzero().numpy()
        one = solve(edges, int(state["exists"].sum()), state)
        if one is None:
            return None
        found.append(one)
    return Solved([value for value, _ in found], NAME, sum(proven for _, proven in found))


def vertex_cover(instances: Instances) -> Solved | None:
    """Return the weights of the lightest covers."""
    return _each(
        instances, lambda edges, nodes, state: cover(edges, state["weight"][:nodes].double().numpy())
    )


def independent_set(instances: Instances) -> Solved | None:
    """Return the sizes of the largest independent sets: all nodes but those of a smallest cover."""

    def solve(edges: Edges, nodes: int, _: Any) -> tuple[float, bool] | None:
        found = cover(edges, np.ones(nodes))
        return None if found is None else (nodes - found[0], found[1])

    return _each(instances, solve)


def cover(edges: Edges, weight: Values) -> tuple[float, bool] | None:
    """Return the weight of the lightest cover of edges `[E, 2]`, and whether it is proven."""
    if not len(edges):
        return 0.0, True
    program = Program.binary(weight)
    for one, other in edges.tolist():
        program.add([(one, 1), (other, 1)], low=1)
    found = program.solve()
    return None if found is None else (float(weight @ found[0]), found[1])


def max_cut(instances: Instances) -> Solved | None:
    """Return the largest cuts of graphs whose edges all weigh 1."""
    return _each(instances, lambda edges, nodes, _: cut(edges, nodes))


def cut(edges: Edges, nodes: int) -> tuple[float, bool] | None:
    """Return the largest number of edges between two sides, and whether it is proven."""
    program = Program.binary(np.concatenate((np.zeros(nodes), -np.ones(len(edges)))))
    program.add([(0, 1)], high=0)
    for number, (one, other) in enumerate(edges.tolist(), start=nodes):
        program.add([(number, 1), (one, -1), (other, -1)], high=0)
        program.add([(number, 1), (one, 1), (other, 1)], high=2)
    found = program.solve()
    if found is None:
        return None
    side = found[0][:nodes]
    return float((side[edges[:, 0]] != side[edges[:, 1]]).sum()), found[1]


def coloring(instances: Instances) -> Solved | None:
    """Return the smallest numbers of colours."""
    return _each(instances, lambda edges, nodes, _: colours(edges, nodes))


def colours(edges: Edges, nodes: int) -> tuple[float, bool] | None:
    """Return the smallest number of colours, and whether it is proven."""
    adjacent = np.zeros((nodes, nodes), dtype=bool)
    adjacent[edges[:, 0], edges[:, 1]] = adjacent[edges[:, 1], edges[:, 0]] = True
    order = np.argsort(-adjacent.sum(1), kind="stable")
    greedy = np.full(nodes, -1)
    for node in order:
        greedy[node] = min(set(range(nodes)) - set(greedy[adjacent[node]].tolist()))
    most = int(greedy.max()) + 1
    # Variables: whether node v has colour k, number v * most + k; then whether colour k is used.
    program = Program.binary(np.concatenate((np.zeros(nodes * most), np.ones(most))))
    used = nodes * most
    for node in range(nodes):
        program.add([(node * most + colour, 1) for colour in range(most)], low=1, high=1)
        program.add([(node * most, 1), (used, -1)], high=0)
    for one, other in edges.tolist():
        for colour in range(most):
            program.add([(one * most + colour, 1), (other * most + colour, 1), (used + colour, -1)], high=0)
    for colour in range(1, most):
        program.add([(used + colour - 1, 1), (used + colour, -1)], low=0)
    for colour, node in enumerate(_clique(adjacent, order)):
        program.add([(node * most + colour, 1)], low=1)
    found = program.solve()
    return None if found is None else (float(found[0][used:].sum()), found[1])


def _clique(adjacent: NDArray[np.bool_], order: NDArray[np.int64]) -> list[int]:
    """Return a clique, grown in the order of nodes."""
    clique: list[int] = []
    for node in order.tolist():
        if adjacent[node, clique].all():
            clique.append(node)
    return clique
