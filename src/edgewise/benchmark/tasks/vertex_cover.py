"""Vertex cover: choose nodes of small total weight so that every edge has a chosen end.

Nodes have weights, uniform in [0, 1]. Small worlds of Watts and Strogatz with four neighbours and rewiring
0.3, as in the ICLR 2026 guide to reinforcement learning with graph networks; tested on preferential
attachment (`family`) and on classic graphs of networkx (`real`, BSD licence). Optima by integer programming.
"""

from edgewise.benchmark.given import real_graphs
from edgewise.benchmark.solvers.selection import vertex_cover
from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="vertex-cover",
    card=__doc__,
    environment="vertex_cover",
    measure="weight",
    settings={"num_nodes": 20, "family": "ws"},
    splits=(
        Split("n", count=64, solver=vertex_cover),
        Split("2n", {"num_nodes": 40}, count=64, solver=vertex_cover),
        Split("10n", {"num_nodes": 200}, count=16, solver=vertex_cover),
        Split("family", {"family": "ba", "attachment": 2}, count=64, solver=vertex_cover),
        Split("real", given=real_graphs, solver=vertex_cover),
    ),
    smoke=40_000,
)
