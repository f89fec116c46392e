"""Optima of small job shops by integer programming, and the best known ones of Taillard's."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgewise.benchmark.given import taillard_shops
from edgewise.benchmark.solvers.programs import NAME, Program, Values
from edgewise.benchmark.task import Solved, starts
from edgewise.evaluation.instances import Instances

MOST_OPERATIONS = 30
"""Largest shops that are solved."""


def best_schedules(instances: Instances) -> Solved | None:
    """Return the makespans of the best schedules."""
    found = []
    for state in starts(instances):
        jobs, machines = int(state["is_job"].sum()), int(state["is_machine"].sum())
        if jobs * machines > MOST_OPERATIONS:
            return None
        duration = state["duration"][:jobs, :machines].double().numpy()
        found.append(schedule(duration, state["machine"][:jobs, :machines].numpy()))
    return Solved([length for length, _ in found], NAME, sum(proven for _, proven in found))


def schedule(duration: Values, machine: NDArray[np.int64]) -> tuple[float, bool]:
    """Return the makespan of the best schedule, and whether it is proven.

    Args:
        duration: of the operations of each job in order, `[J, M]`.
        machine: of each operation, `[J, M]`.
    """
    jobs, machines = duration.shape
    horizon = _dispatched(duration, machine)
    pairs = [
        (one, other)
        for place in range(machines)
        for one, other in combinations([(j, int(np.argmax(machine[j] == place))) for j in range(jobs)], 2)
    ]
    # Variables: start of operation (j, k), number j * machines + k; the makespan; the order of each pair.
    last, count = jobs * machines, jobs * machines + 1 + len(pairs)
    upper = np.concatenate((np.full(last + 1, horizon), np.ones(len(pairs))))
    program = Program(np.zeros(count), upper, np.arange(count) > last)
    program.cost[last] = 1
    at = lambda operation: operation[0] * machines + operation[1]  # noqa: E731
    for job in range(jobs):
        for step in range(machines):
            after = job * machines + step + 1 if step + 1 < machines else last
            program.add([(after, 1), (job * machines + step, -1)], low=float(duration[job, step]))
            head, tail = duration[job, :step].sum(), duration[job, step:].sum()
            program.add([(job * machines + step, 1)], low=float(head), high=float(horizon - tail))
    for number, (one, other) in enumerate(pairs, start=last + 1):
        program.add([(at(other), 1), (at(one), -1), (number, horizon)], low=float(duration[one]))
        program.add([(at(one), 1), (at(other), -1), (number, -horizon)], low=float(duration[other] - horizon))
    solved = program.solve()
    return (horizon, False) if solved is None else (float(np.round(solved[0][last])), solved[1])


def _dispatched(duration: Values, machine: NDArray[np.int64]) -> float:
    """Return the makespan of a simple schedule: of the operations that can begin first, the longest job."""
    jobs, machines = duration.shape
    step, ready, free = np.zeros(jobs, dtype=int), np.zeros(jobs), np.zeros(machines)
    for _ in range(jobs * machines):
        opened = [
            (max(ready[j], free[machine[j, step[j]]]), -duration[j, step[j] :].sum(), j)
            for j in range(jobs)
            if step[j] < machines
        ]
        start, _, job = min(opened)
        end = start + duration[job, step[job]]
        ready[job] = free[machine[job, step[job]]] = end
        step[job] += 1
    return float(ready.max())


def best_known(instances: Instances) -> Solved | None:
    """Return the best known makespans of Taillard's shops, which come with the package of the shops."""
    config: Any = instances.env.config
    shops = taillard_shops()[int(config.num_jobs), int(config.num_machines)][: instances.env.num_envs]
    bounds = [shop["metadata"] for shop in shops]
    proven = sum(each["upper_bound"] == each["lower_bound"] for each in bounds)
    return Solved([float(each["upper_bound"]) for each in bounds], "best published", proven)
