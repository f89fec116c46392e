"""Coloring: order the nodes so that few colours are needed, each node taking the smallest that fits.

Random graphs of Erdős and Rényi with 0.3 n neighbours on average up to 2n, and 12 at 10n; tested on small
worlds (`family`) and on classic graphs of networkx (`real`, BSD licence). Optima by integer programming.
"""

from edgewise.benchmark.given import real_graphs
from edgewise.benchmark.solvers.selection import coloring
from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="coloring",
    card=__doc__,
    environment="coloring",
    measure="colours",
    settings={"num_nodes": 20, "density": 0.3},
    splits=(
        Split("n", count=64, solver=coloring),
        Split("2n", {"num_nodes": 40}, count=64, solver=coloring),
        Split("10n", {"num_nodes": 200, "density": 0.06}, count=16),
        Split("family", {"family": "ws", "neighbours": 6}, count=64, solver=coloring),
        Split("real", given=real_graphs, solver=coloring),
    ),
    smoke=40_000,
)
