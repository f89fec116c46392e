"""Sets of nodes from the logits of an exported policy, with numpy alone: the source goes into its README."""

from __future__ import annotations

from collections.abc import Mapping
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

    def best_set(free: set[int], near: dict[int, set[int]], logits: Any) -> tuple[int, ...]:
        # Decide node after node. Keep the best set for each state of the decided nodes that still have
        # undecided neighbours: taken, covered by a taken neighbour, or neither yet.
        best: dict[frozenset[tuple[int, str]], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
        edge: set[int] = set()
        while free:
            node = min(free, key=lambda one: (len(near[one] & free) - 2 * len(near[one] & edge), one))
            free = free - {node}
            edge = {one for one in edge | {node} if near[one] & free}
            after: dict[frozenset[tuple[int, str]], tuple[float, tuple[int, ...]]] = {}
            for state, (score, members) in best.items():
                before = dict(state)
                blocked = any(before.get(other) == "taken" for other in near[node])
                ways = [(before | {node: "covered" if blocked else "neither"}, score, members)]
                if not blocked:
                    covered = dict.fromkeys(near[node] & before.keys(), "covered")
                    taken = (*members, node)
                    ways.append((before | covered | {node: "taken"}, score + float(logits[node]), taken))
                for found, total, chosen in ways:
                    if all(found[one] != "neither" for one in found.keys() - edge):
                        key = frozenset((one, found[one]) for one in found.keys() & edge)
                        after[key] = max(after.get(key, (total, chosen)), (total, chosen))
            best = after
        return best[frozenset()][1]

    allowed = inputs["node_mask"] & inputs.get("action_mask", True)
    chosen = numpy.zeros_like(allowed)
    for number, logits in enumerate(outputs["logits"]):
        free = set(allowed[number].nonzero()[0].tolist())
        near: dict[int, set[int]] = {node: set() for node in free}
        for one, other in inputs["edge_index"][number][:, inputs["edge_mask"][number]].T.tolist():
            if one in free and other in free:
                near[one].add(other)
                near[other].add(one)
        chosen[number, list(best_set(free, near, logits))] = True
    return chosen
