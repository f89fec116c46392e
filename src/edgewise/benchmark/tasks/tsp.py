"""Travelling salesman: visit every city of the unit square once by a short round trip.

Cities are uniform; tested on cities in three clusters (`family`). Optima by integer programming with subtour
cuts up to 2n, and tours by LKH at 10n where elkai is installed (`pip install edgewise[solvers]`; the
licence of LKH is for research).
"""

from edgewise.benchmark.solvers.plane import best_tours, clustered_cities
from edgewise.benchmark.task import Split, Task

TASK = Task(
    name="tsp",
    card=__doc__,
    environment="tsp",
    measure="tour",
    settings={"num_cities": 20},
    splits=(
        Split("n", count=64, solver=best_tours),
        Split("2n", {"num_cities": 40}, count=64, solver=best_tours),
        Split("10n", {"num_cities": 200}, count=16, solver=best_tours),
        Split("family", count=64, given=clustered_cities, solver=best_tours),
    ),
    smoke=80_000,
)
