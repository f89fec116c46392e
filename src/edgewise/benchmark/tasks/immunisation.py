"""Immunisation: remove a tenth of the nodes of a network so that few pairs of the others stay connected.

Networks of preferential attachment, of 50 to 500 nodes; tested on small worlds (`family`) and on classic
graphs of networkx (`real`, BSD licence). The measure is the share of all pairs that a path joins at the end.
Optima are not known; the reference is the best column.
"""

from edgewise.benchmark.given import real_graphs
from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="immunisation",
    card=__doc__,
    environment="immunisation",
    measure="connected",
    settings={"num_nodes": 50, "share": 0.1},
    splits=(
        Split("n", count=64),
        Split("2n", {"num_nodes": 100}, count=64),
        Split("10n", {"num_nodes": 500}, count=8),
        Split("family", {"family": "ws"}, count=64),
        Split("real", given=real_graphs),
    ),
    smoke=10_240,
)
