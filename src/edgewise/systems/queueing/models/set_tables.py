"""What a distribution over sets needs of some graphs: lists of sets, decision diagrams, or only the edges."""

from __future__ import annotations

from torch import Tensor

from edgewise.systems.queueing.models.diagram_set import SetDiagrams
from edgewise.systems.queueing.models.maximal_set import SetLists
from edgewise.systems.queueing.models.sequential_set import SetGraphs
from edgewise.systems.queueing.sets.diagram import MAX_STATES, set_diagram
from edgewise.systems.queueing.sets.listing import MAX_SETS, maximal_sets

SetTables = SetLists | SetDiagrams | SetGraphs


def set_tables(adjacency: Tensor, *, max_sets: int = MAX_SETS, max_states: int = MAX_STATES) -> SetTables:
    """Choose how the maximal sets of G graphs are represented, the same for all graphs.

    Lists are the fastest if every graph has few sets, and diagrams give the same distribution without a list.
    If a diagram would be too wide, sets are sampled node by node.

    Args:
        adjacency: `[G, N, N]` bool, symmetric, no loops.
        max_sets: maximum number of sets of a graph to list.
        max_states: maximum number of states in a layer of a diagram.
    """
    lists = []
    for graph in adjacency:
        found = maximal_sets(graph, limit=max_sets)
        if found is None:
            break
        lists.append(found)
    else:
        return SetLists(adjacency, lists)
    diagrams = []
    for graph in adjacency:
        diagram = set_diagram(graph, limit=max_states)
        if diagram is None:
            return SetGraphs(adjacency)
        diagrams.append(diagram)
    return SetDiagrams(adjacency, diagrams)
