"""Sets of nodes from the logits of an exported policy, with numpy alone: the source goes into its README."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy

Arrays = Mapping[str, "numpy.ndarray[Any, Any]"]


def take_in_turn(inputs: Arrays, outputs: Arrays) -> numpy.ndarray[Any, Any]:
    """Take every allowed node with a positive logit in turn, unless a neighbour was taken before."""
    chosen = inputs["node_mask"] & inputs.get("action_mask", True) & (outputs["logits"] > 0)
    for row, edges, exists in zip(chosen, inputs["edge_index"], inputs["edge_mask"]):  # noqa: B905
        pairs = {frozenset(pair) for pair in edges[:, exists].T.tolist()}
        for node in range(len(row)):
            row[node] &= not any(row[other] and {node, other} in pairs for other in range(node))
    return chosen


def best_maximal_set(inputs: Arrays, outputs: Arrays) -> numpy.ndarray[Any, Any]:
    """Take the maximal set of allowed nodes without neighbours that has the largest sum of logits."""

    def maximal_sets(free: set[int], near: dict[int, set[int]]) -> Iterator[list[int]]:
        if not free:
            yield []
        for node in free & (near[min(free)] | {min(free)}) if free else ():
            yield from ([node, *rest] for rest in maximal_sets(free - near[node] - {node}, near))

    allowed = inputs["node_mask"] & inputs.get("action_mask", True)
    chosen = numpy.zeros_like(allowed)
    for number, logits in enumerate(outputs["logits"]):
        near: dict[int, set[int]] = {node: set() for node in range(len(logits))}
        for one, other in inputs["edge_index"][number][:, inputs["edge_mask"][number]].T.tolist():
            near[one].add(other)
            near[other].add(one)
        sets = maximal_sets(set(allowed[number].nonzero()[0].tolist()), near)
        chosen[number, max(sets, key=lambda nodes: logits[nodes].sum())] = True
    return chosen
