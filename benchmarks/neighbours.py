"""Cost of edges by rule against the number of nodes: all pairs, sorted cells and the k-d tree.

    python -m benchmarks.neighbours [--json FILE] [--quick]

CPU time of one thread per node, median of interleaved runs. Points are even in the unit square; `radius` has
about 8 neighbours per node at every size, `nearest` has 8. The whole rule is measured: search, the order of
all pairs, and three features per edge. `all pairs` stops at 2,000 nodes, where its matrices have 4 million
places. `cKDTree alone` builds scipy's tree and queries it, without edges, order and features. The last rows
give the growth of the cost per node from 100 nodes on, and cells over both.
"""

from __future__ import annotations

import math

import torch
from benchmarks.program import Figures, cpu_seconds, main
from scipy.spatial import cKDTree
from tensordict import TensorDict

from edgewise.graphs.proximity import Nearest, PositionRule, Radius
from edgewise.graphs.spec import GraphSpec

NEIGHBOURS = 8
SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
MOST_PAIRS = 2_000
SEARCHES = {"all pairs": "pairs", "cells": "cells", "k-d tree": "kd_tree"}


def even_cloud(nodes: int) -> TensorDict:
    """Sample one graph of points in the unit square."""
    graph = GraphSpec(nodes, 1, Radius(1.0), position_dim=2).zeros(1)
    graph["pos"] = torch.rand(1, nodes, 2)
    graph["node_mask"] = torch.ones(1, nodes, dtype=torch.bool)
    return graph


def rule(kind: str, nodes: int, search: str) -> PositionRule:
    if kind == "nearest":
        return Nearest(NEIGHBOURS, search=search, pairs=False)  # type: ignore[arg-type]
    return Radius(math.sqrt(NEIGHBOURS / (math.pi * nodes)), search=search)  # type: ignore[arg-type]


def search_alone(kind: str, nodes: int, graph: TensorDict) -> object:
    """Find neighbours by scipy's k-d tree, without making edges of them."""
    tree = cKDTree(graph["pos"][0].numpy())
    if kind == "nearest":
        return tree.query(tree.data, k=NEIGHBOURS + 1)
    return tree.query_pairs(math.sqrt(NEIGHBOURS / (math.pi * nodes)), output_type="ndarray")


def measure(kind: str, nodes: int, repeats: int) -> dict[str, float]:
    """Measure microseconds per node of each search."""
    graph = even_cloud(nodes)
    tasks = {
        name: lambda search=search: rule(kind, nodes, search)(graph)
        for name, search in SEARCHES.items()
        if name != "all pairs" or nodes <= MOST_PAIRS
    }
    tasks["cKDTree alone"] = lambda: search_alone(kind, nodes, graph)
    times = max(min(repeats, 2_000_000 // nodes), 1)
    rounds = max(1, 1_000 // nodes)

    def several(task):
        return lambda: [task() for _ in range(rounds)]

    found = cpu_seconds({name: several(task) for name, task in tasks.items()}, times)
    return {f"{name}, us per node": 1e6 * seconds / nodes / rounds for name, seconds in found.items()}


def run(quick: bool = False) -> Figures:
    """Measure all sizes; `quick` stops at 1,000 nodes."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = SIZES[:5] if quick else SIZES
    figures: Figures = {}
    for kind in ("radius", "nearest"):
        for nodes in sizes:
            figures[f"{kind}, {nodes} nodes"] = measure(kind, nodes, 3 if quick else 9)
        first, last = (figures[f"{kind}, {nodes} nodes"] for nodes in (100, sizes[-1]))
        middle = figures[f"{kind}, {min(10_000, sizes[-1])} nodes"]
        growth = {
            f"{name}, growth from 100 to {sizes[-1]} nodes": last[key] / first[key]
            for name in ("cells", "k-d tree")
            for key in [f"{name}, us per node"]
        }
        ratios = {
            f"cells over {name}, {min(10_000, sizes[-1])} nodes": middle["cells, us per node"]
            / middle[f"{name}, us per node"]
            for name in ("k-d tree", "cKDTree alone")
        }
        figures[f"{kind}, ratios"] = {**growth, **ratios}
    return figures


if __name__ == "__main__":
    main(run, __doc__)
