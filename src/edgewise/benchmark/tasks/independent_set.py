"""Independent set: choose as many nodes as possible, no two of them neighbours.

Random graphs of Erdős and Rényi with 4.75 neighbours on average at every size; tested on preferential
attachment (`family`) and on classic graphs of networkx (`real`, BSD licence). Optima by integer programming.
"""

from edgewise.benchmark.given import real_graphs
from edgewise.benchmark.solvers.selection import independent_set
from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="independent-set",
    card=__doc__,
    environment="independent_set",
    measure="nodes",
    maximise=True,
    settings={"num_nodes": 20, "density": 0.25},
    splits=(
        Split("n", count=64, solver=independent_set),
        Split("2n", {"num_nodes": 40, "density": 0.1218}, count=64, solver=independent_set),
        Split("10n", {"num_nodes": 200, "density": 0.02387}, count=16, solver=independent_set),
        Split("family", {"family": "ba", "attachment": 2}, count=64, solver=independent_set),
        Split("real", given=real_graphs, solver=independent_set),
    ),
    smoke=40_000,
)
