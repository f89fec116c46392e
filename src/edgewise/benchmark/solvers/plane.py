"""Optima of tours and routes in the plane, and cities in clusters."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components

from edgewise.benchmark.given import with_start
from edgewise.benchmark.solvers.programs import NAME, Program, Values
from edgewise.benchmark.task import Solved, starts
from edgewise.evaluation.instances import Instances

if TYPE_CHECKING:
    from edgewise.benchmark.task import Split, Task

MOST_CITIES, MOST_CUSTOMERS = 60, 25
"""Largest instances that are solved by integer programming."""
ROUNDS = 500
"""Iterations of PyVRP without a better solution after which it stops."""
UNIT = 10**6
"""Parts of a distance of 1 for solvers that take whole numbers."""


def clustered_cities(task: Task, split: Split, count: int) -> list[Instances]:
    """Return cities that are normally distributed around three centres, within the unit square."""
    made = task.sampled(split, count)
    env: Any = made.env
    env.set_seed(made.seed)
    place = env.reset()["state"]["place"]
    centre = torch.rand(count, 3, 2, generator=env.generator)
    noise = torch.randn(place.shape, generator=env.generator)
    around = centre[:, torch.arange(place.shape[1]) % 3]
    return [with_start(made, {"place": (around + 0.07 * noise).clamp(0, 1)})]


def best_tours(instances: Instances) -> Solved | None:
    """Return the lengths of shortest tours, or for many cities those of LKH if elkai is installed."""
    states = starts(instances)
    is_large = bool((states["exists"].sum(-1) > MOST_CITIES).any())
    if is_large and find_spec("elkai") is None:
        return None
    found = []
    for state in states:
        place = state["place"][state["exists"]].double().numpy()
        distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
        found.append((_lkh(distance), False) if is_large else tour(distance))
    return Solved(
        [length for length, _ in found], "LKH" if is_large else NAME, sum(proven for _, proven in found)
    )


def _lkh(distance: Values) -> float:
    import elkai  # type: ignore[import-not-found, import-untyped, unused-ignore]

    whole = np.round(distance * UNIT).astype(int)
    order = elkai.DistanceMatrix(whole.tolist()).solve_tsp()
    return float(sum(distance[one, other] for one, other in pairwise(order)))


def tour(distance: Values) -> tuple[float, bool]:
    """Return the length of a shortest tour, and whether it is proven: subtours are cut off one by one."""
    count = len(distance)
    if count < 4:
        return float(sum(distance[node, (node + 1) % count] for node in range(count))), True
    one, other = np.triu_indices(count, 1)
    program = Program.binary(distance[one, other])
    for node in range(count):
        program.add([(int(e), 1) for e in np.flatnonzero((one == node) | (other == node))], low=2, high=2)
    while True:
        solved = program.solve()
        assert solved is not None
        used, proven = solved
        links = np.zeros((count, count))
        links[one, other] = used
        parts, part = connected_components(links, directed=False)
        if parts == 1:
            return float(distance[one, other] @ used), proven
        for number in range(parts):
            across = np.flatnonzero((part[one] == number) != (part[other] == number))
            program.add([(int(edge), 1) for edge in across], low=2)


def best_routes(instances: Instances) -> Solved | None:
    """Return the lengths of the best sets of routes, or for many customers those of PyVRP if installed."""
    states, service = starts(instances), float(instances.env.config.service)
    is_large = bool((states["exists"].sum(-1) > MOST_CUSTOMERS + 1).any())
    if is_large and find_spec("pyvrp") is None:
        return None
    found = [(_pyvrp(each, service), False) if is_large else routes(each, service=service) for each in states]
    if not all(np.isfinite(length) for length, _ in found):
        return None
    return Solved(
        [length for length, _ in found], "PyVRP" if is_large else NAME, sum(proven for _, proven in found)
    )


def _pyvrp(state: Any, service: float) -> float:
    from pyvrp import Model  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from pyvrp.stop import NoImprovement  # type: ignore[import-not-found, import-untyped, unused-ignore]

    place, demand, opens, closes = _customers(state)
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
    # Rounded against the vehicle, so that no route is late or overloaded.
    whole, load = np.ceil(distance * UNIT).astype(int), np.ceil(demand * UNIT - 1).astype(int)
    model, count = Model(), len(place)
    places = [model.add_location(0, 0) for _ in range(count)]
    model.add_depot(places[0])
    for node in range(1, count):
        model.add_client(
            places[node],
            delivery=int(load[node]),
            service_duration=round(service * UNIT),
            tw_early=int(opens[node] * UNIT),
            tw_late=int(closes[node] * UNIT),
        )
    model.add_vehicle_type(count, capacity=UNIT)
    for one in range(count):
        for other in range(count):
            way = int(whole[one, other])
            model.add_edge(places[one], places[other], distance=way, duration=way)
    solved = model.solve(stop=NoImprovement(ROUNDS), seed=0, display=False).best
    if not solved.is_feasible():
        return float("inf")
    length = 0.0
    for route in solved.routes():
        stops = [int(stop[1:]) + 1 for each in route if (stop := str(each)).startswith("C")]
        length += float(sum(distance[one, other] for one, other in pairwise([0, *stops, 0])))
    return length


def _customers(state: Any) -> tuple[Values, Values, Values, Values]:
    """Return places, demands as shares of the capacity, and when windows open and close."""
    exists = state["exists"]
    place, demand, opens, closes = (
        state[name][exists].double().numpy() for name in ("place", "demand", "opens", "closes")
    )
    return place, demand, opens, closes


def routes(state: Any, *, service: float) -> tuple[float, bool]:
    """Return the length of the best routes from node 0 to all others, and whether it is proven."""
    place, demand, opens, closes = _customers(state)
    shortest = _possible_routes(place, demand, opens, closes, service)
    program = Program.binary(np.array(list(shortest.values())))
    for customer in range(1, len(place)):
        covers = [(number, 1.0) for number, served in enumerate(shortest) if customer in served]
        program.add(covers, low=1, high=1)
    solved = program.solve()
    assert solved is not None
    return float(program.cost @ solved[0]), solved[1]


def _possible_routes(
    place: Values, demand: Values, opens: Values, closes: Values, service: float
) -> dict[frozenset[int], float]:
    """Return the length of the shortest route for each set of customers that one can serve."""
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
    shortest: dict[frozenset[int], float] = {}
    waiting = [(frozenset[int](), 0, 0.0, 0.0, 1.0)]
    while waiting:
        served, here, time, length, left = waiting.pop()
        if served:
            home = length + float(distance[here, 0])
            shortest[served] = min(home, shortest.get(served, np.inf))
        for customer in range(1, len(place)):
            arrival = time + float(distance[here, customer])
            is_in_time = arrival <= closes[customer] + 1e-6
            if customer in served or not is_in_time or demand[customer] > left + 1e-6:
                continue
            begin = max(arrival, float(opens[customer]))
            driven = length + float(distance[here, customer])
            rest = left - float(demand[customer])
            waiting.append((served | {customer}, customer, begin + service, driven, rest))
    return shortest
