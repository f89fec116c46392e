"""Max-cut: divide the nodes so that many edges lie between the two sides, by moving one node at a time.

An episode has two moves per node, and its best cut counts. Random graphs of Erdős and Rényi with 4.75
neighbours on average at every size; tested on preferential attachment (`family`) and on classic graphs of
networkx (`real`, BSD licence).
"""

from edgewise.benchmark.given import real_graphs
from edgewise.benchmark.solvers.selection import max_cut
from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="max-cut",
    card=__doc__,
    environment="max_cut",
    measure="cut",
    maximise=True,
    settings={"num_nodes": 20, "density": 0.25},
    splits=(
        Split("n", count=64, solver=max_cut),
        Split("2n", {"num_nodes": 40, "density": 0.1218}, count=64, solver=max_cut),
        Split("10n", {"num_nodes": 200, "density": 0.02387}, count=16),
        Split("family", {"family": "ba", "attachment": 2}, count=64, solver=max_cut),
        Split("real", given=real_graphs, solver=max_cut),
    ),
    smoke=20_480,
)
