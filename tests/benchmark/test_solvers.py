"""Solvers against brute force on small instances."""

import ctypes
import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

import edgewise as ew
from edgewise.benchmark.columns import Field, by_rule, by_solver, rule_names
from edgewise.benchmark.solvers.plane import _lkh, _pyvrp, routes, tour
from edgewise.benchmark.solvers.programs import _silent_stdout
from edgewise.benchmark.solvers.schedules import schedule
from edgewise.benchmark.solvers.selection import colours, cover, cut
from edgewise.benchmark.tasks import tasks


def graphs(count, nodes=7, density=0.4):
    """Random graphs as arrays of edges."""
    generator = np.random.default_rng(0)
    for _ in range(count):
        adjacent = np.triu(generator.random((nodes, nodes)) < density, 1)
        yield np.argwhere(adjacent), generator.random(nodes)


def subsets(nodes):
    for chosen in itertools.product((False, True), repeat=nodes):
        yield np.array(chosen)


def test_the_lightest_cover():
    for edges, weight in graphs(12):
        covers = (each for each in subsets(7) if (each[edges[:, 0]] | each[edges[:, 1]]).all())
        value, proven = cover(edges, weight)
        assert proven
        assert value == pytest.approx(min(weight[each].sum() for each in covers))


def test_the_largest_cut():
    for edges, _ in graphs(12):
        best = max((each[edges[:, 0]] != each[edges[:, 1]]).sum() for each in subsets(7))
        assert cut(edges, 7) == (best, True)


def test_the_fewest_colours():
    for edges, _ in graphs(6, nodes=6, density=0.5):

        def is_enough(count, edges=edges):
            found = (np.array(each) for each in itertools.product(range(count), repeat=6))
            return any((each[edges[:, 0]] != each[edges[:, 1]]).all() for each in found)

        fewest = next(count for count in range(1, 7) if is_enough(count))
        assert colours(edges, 6) == (fewest, True)


@pytest.mark.parametrize(("count", "apart"), [(3, 0), (5, 0), (8, 0), (6, 5), (8, 5)])
def test_the_shortest_tour(count, apart):
    """Of cities that are spread, and of two groups that lie apart, where short tours do not join."""
    place = np.random.default_rng(count).random((count, 2))
    place[: count // 2] += apart
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
    orders = ([0, *rest] for rest in itertools.permutations(range(1, count)))
    best = min(sum(distance[o[i], o[i - 1]] for i in range(count)) for o in orders)
    assert tour(distance) == (pytest.approx(best), True)


def length_of(order, state, service):
    """The length of routes in an order of customers and depots; infinite if it cannot be driven."""
    time, left, here, length = 0.0, 1.0, 0, 0.0
    place = state["place"].double()
    for node in (*order, 0):
        way = float((place[node] - place[here]).norm())
        length, time, here = length + way, time + way, node
        left = 1.0 if node == 0 else left - float(state["demand"][node])
        if node == 0:
            time = 0.0
        elif time > float(state["closes"][node]) + 1e-6 or left < -1e-6:
            return np.inf
        else:
            time = max(time, float(state["opens"][node])) + service
    return length


def test_the_best_routes():
    env = ew.make_env("cvrptw", num_envs=6, seed=3, num_customers=4, capacity=12.0)
    for state in env.reset()["state"]:
        best = np.inf
        for order in itertools.permutations(range(1, 5)):
            for breaks in itertools.product((False, True), repeat=3):
                parts = [order[0]]
                for node, is_break in zip(order[1:], breaks, strict=True):
                    parts += [0, node] if is_break else [node]
                best = min(best, length_of(parts, state, env.config.service))
        assert routes(state, service=env.config.service) == (pytest.approx(best, abs=1e-5), True)


def test_the_best_schedule():
    env = ew.make_env("job_shop", num_envs=6, seed=0, num_jobs=3, num_machines=2)
    start = env.reset()["state"]
    for world in range(6):
        duration = start["duration"][world].double().numpy()
        machine = start["machine"][world].numpy()
        best = np.inf
        for order in set(itertools.permutations([0, 0, 1, 1, 2, 2])):
            step, ready, free = [0] * 3, [0.0] * 3, [0.0] * 2
            for job in order:
                place = machine[job, step[job]]
                ready[job] = free[place] = max(ready[job], free[place]) + duration[job, step[job]]
                step[job] += 1
            best = min(best, max(ready))
        assert schedule(duration, machine) == (best, True)


@pytest.mark.parametrize("nodes", [1, 2])
def test_graphs_without_an_edge(nodes):
    assert cover(np.zeros((0, 2), dtype=int), np.ones(nodes)) == (0.0, True)
    assert cut(np.zeros((0, 2), dtype=int), nodes) == (0.0, True)


def test_solvers_agree_with_the_measures_of_their_tasks():
    """No rule is better than an optimum, and some rule reaches it on an instance, but for routes."""
    for name in ("vertex-cover", "independent-set", "coloring", "tsp", "cvrptw", "job-shop"):
        task = tasks()[name].smaller()
        field = Field(replace(task, splits=task.splits[:1]))
        solved = by_solver(field)
        best = {split: np.full(len(row), -np.inf) for split, row in solved.values.items()}
        for rule in rule_names(field)[1:]:
            for split, row in by_rule(field, rule).values.items():
                if split in best:
                    best[split] = np.maximum(best[split], field.task.sign * np.array(row))
        for split, row in solved.values.items():
            gap = field.task.sign * np.array(row) - best[split]
            assert (gap >= -1e-4).all(), (name, split)
        is_reached = field.task.sign * np.array(solved.values["n"]) - best["n"] < 1e-4
        assert is_reached.any() == (name != "cvrptw"), name


def test_tours_of_lkh_are_shortest_ones():
    pytest.importorskip("elkai", reason="needs elkai: pip install 'edgewise[solvers]'")
    place = np.random.default_rng(0).random((20, 2))
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)
    assert _lkh(distance) == pytest.approx(tour(distance)[0])


def test_routes_of_pyvrp_are_the_best_ones():
    pytest.importorskip("pyvrp", reason="needs PyVRP: pip install 'edgewise[solvers]'")
    env = ew.make_env("cvrptw", num_envs=4, seed=1, num_customers=9)
    service = env.config.service
    for state in env.reset()["state"]:
        assert _pyvrp(state, service) == pytest.approx(routes(state, service=service)[0])


def test_nothing_that_a_solver_writes_gets_among_results(capfd):
    with _silent_stdout():
        ctypes.CDLL(None).puts(b"a line of a solver")
    sys.stdout.write("a result\n")
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "a result\n"
