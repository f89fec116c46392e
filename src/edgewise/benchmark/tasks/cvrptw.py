"""Vehicle routing with time windows: serve all customers in their windows by short routes of bounded load.

Customers are uniform in the unit square, demands are 1 to 9 of a capacity of 30; tested on narrower windows
and a smaller vehicle (`family`). Optima up to 2n by set partitioning over all possible
routes, and routes by PyVRP at 10n where it is installed (MIT licence).
"""

from edgewise.benchmark.solvers.plane import best_routes
from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="cvrptw",
    card=__doc__,
    environment="cvrptw",
    measure="length",
    settings={"num_customers": 10},
    splits=(
        Split("n", count=64, solver=best_routes),
        Split("2n", {"num_customers": 20}, count=64, solver=best_routes),
        Split("10n", {"num_customers": 100}, count=16, solver=best_routes),
        Split("family", {"window": [0.2, 0.6], "capacity": 20.0}, count=64, solver=best_routes),
    ),
    smoke=40_000,
)
