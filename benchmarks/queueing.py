"""Slots of `queueing` per CPU-second: one process compared with TorchRL's ParallelEnv with 2 workers.

    python benchmarks/queueing.py [--json FILE] [--quick]

CPU time of all processes, one thread each; ratios transfer to other machines, slots per second do not.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torchrl.envs import EnvBase, ParallelEnv

from edgewise.systems.queueing.baselines import MaxWeight
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.env import QueueingEnv
from edgewise.systems.queueing.graphs import conflict_graph
from edgewise.systems.queueing.sets.listing import maximal_sets

GRAPH = "line3"
WORKERS = 2
WORLDS = (1, 64, 1024, 4096)
EVALUATION_SLOTS = 320_000


def make(worlds: int) -> QueueingEnv:
    """Build the environment of all measurements."""
    torch.set_num_threads(1)
    return QueueingEnv(QueueingConfig(graphs=(GRAPH,)), num_envs=worlds, seed=0)


def stepper(env: EnvBase) -> Callable[[], None]:
    """Build one slot of all worlds under a random maximal schedule, with resets."""
    sets = maximal_sets(conflict_graph(GRAPH).adjacency)
    assert sets is not None
    root = [env.reset()]

    def step() -> None:
        action: Tensor = sets[torch.randint(len(sets), env.batch_size)]
        _, root[0] = env.step_and_maybe_reset(root[0].set("action", action))

    return step


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time of this process and of others, in seconds."""
    total = time.process_time()
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def slots_per_second(env: EnvBase, *, seconds: float, pids: list[int]) -> float:
    """Measure world-slots per CPU-second over at least `seconds` CPU-seconds, after a warm-up."""
    step = stepper(env)
    for _ in range(5):
        step()
    began, steps = cpu_seconds(pids), 0
    while (spent := cpu_seconds(pids) - began) < seconds:
        for _ in range(10):
            step()
        steps += 10
    return steps * env.batch_size.numel() / spent


def parallel(worlds_each: int, *, seconds: float) -> float:
    """Measure world-slots per CPU-second of ParallelEnv with `worlds_each` worlds in each worker."""
    env = ParallelEnv(WORKERS, partial(make, worlds_each))
    try:
        env.reset()
        return slots_per_second(env, seconds=seconds, pids=[worker.pid for worker in env._workers])
    finally:
        env.close()


def evaluation() -> float:
    """Measure CPU-seconds of a long evaluation of MaxWeight on 1,024 worlds."""
    env = make(1024)
    policy, root = MaxWeight(env), env.reset()
    began = time.process_time()
    for _ in range(-(-EVALUATION_SLOTS // 1024)):
        root = env.step_mdp(env.step(policy(root)))
    return time.process_time() - began


def run(quick: bool) -> dict[str, Any]:
    """Measure everything."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    seconds = 1.0 if quick else 4.0
    single = parallel(1, seconds=seconds)
    rows = []
    for worlds in WORLDS:
        ours = slots_per_second(make(worlds), seconds=seconds, pids=[])
        halves = parallel(worlds // WORKERS, seconds=seconds) if worlds >= WORKERS and not quick else None
        rows.append(
            {
                "worlds": worlds,
                "slots_per_cpu_second": ours,
                "times_parallel_of_singles": ours / single,
                "parallel_of_halves": halves,
                "times_parallel_of_halves": None if halves is None else ours / halves,
            }
        )
    return {
        "graph": GRAPH,
        "parallel_of_singles_slots_per_cpu_second": single,
        "rows": rows,
        f"maxweight_{EVALUATION_SLOTS}_slots_cpu_seconds": evaluation(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    found = run(options.quick)
    single = found["parallel_of_singles_slots_per_cpu_second"]
    print(f"ParallelEnv, {WORKERS} workers of one world each: {single:,.0f} slots per CPU-second")
    print("worlds   slots/CPU-s   x singles   ParallelEnv of halves   x halves")
    for row in found["rows"]:
        halves, times = row["parallel_of_halves"], row["times_parallel_of_halves"]
        beside = "" if halves is None else f"{halves:>24,.0f}{times:>11.1f}"
        print(
            f"{row['worlds']:>6}{row['slots_per_cpu_second']:>14,.0f}{row['times_parallel_of_singles']:>12.0f}{beside}"
        )
    spent = found[f"maxweight_{EVALUATION_SLOTS}_slots_cpu_seconds"]
    print(f"{EVALUATION_SLOTS:,} slots under MaxWeight: {spent:.2f} CPU-seconds")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
