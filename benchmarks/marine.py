"""Speed of the marine environment: robot-steps per CPU-second, eager, compiled and in worker processes.

    python -m benchmarks.marine [--json FILE] [--quick]

One thread; CPU time of this process and its workers. Noise is on, and resets, observation and metrics are
included; random actions are sampled beforehand. Only active robots are counted; robots that have ended cost
as much. `graph` adds the edges of the graph to the observation. The reference's figures were measured on one
core with the published code, without resets.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from functools import partial
from pathlib import Path

import torch
from benchmarks.program import Figures, main
from torchrl.envs import EnvBase, ParallelEnv

from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.marine.env import MarineEnv

SEAS = {"6 robots, 4 obstacles": (6, 4, 0), "6 robots, 8 obstacles, 8 cores": (6, 8, 8)}
REFERENCE = {"6 robots, 4 obstacles": 429.0, "6 robots, 8 obstacles, 8 cores": 134.0}
WORLDS = (1, 64, 1024, 4096)
WORKERS = 2
ACTIONS = 16
"""Number of random actions sampled beforehand and used in turn."""


def cpu_seconds() -> float:
    """Return the CPU time of this process and its workers so far."""
    ticks = 0
    for worker in multiprocessing.active_children():
        fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def robot_steps(env: EnvBase, *, seconds: float, warm_up: int = 5) -> float:
    """Measure steps of active robots per CPU-second for `seconds` seconds.

    A few worlds are reset first, since a reset of one world and of several trigger one compilation each.
    """
    if isinstance(env, MarineEnv):
        for count in (1, 2, 3):
            env.spawn(count)
    root, acted = env.reset(), 0
    actions = [env.rand_action(root)["action"].clone() for _ in range(ACTIONS)]
    for number in range(warm_up):
        _, root = env.step_and_maybe_reset(root.set("action", actions[number % ACTIONS]))
    start = cpu_seconds()
    while cpu_seconds() - start < seconds:
        for action in actions:
            acted += int(root["agents", "active"].sum())
            _, root = env.step_and_maybe_reset(root.set("action", action))
    return acted / (cpu_seconds() - start)


def sea(
    worlds: int, robots: int, obstacles: int, *, cores: int, graph: bool = False, compiled: bool = False
) -> MarineEnv:
    """Build worlds with noise, as in training."""
    config = MarineConfig(
        num_robots=robots, num_obstacles=obstacles, num_cores=cores, graph_edges=graph, compile=compiled
    )
    return MarineEnv(config, num_envs=worlds, seed=0)


def measure(name: str, *, quick: bool) -> dict[str, float]:
    """Measure all columns of one setting."""
    robots, obstacles, cores = SEAS[name]
    seconds = 0.3 if quick else 3.0
    make = partial(sea, robots=robots, obstacles=obstacles, cores=cores)
    worlds = WORLDS[:3] if quick else WORLDS
    row = {f"{count} worlds": robot_steps(make(count), seconds=seconds) for count in worlds}
    for count in () if quick else worlds:
        row[f"{count} worlds, compiled"] = robot_steps(make(count, compiled=True), seconds=seconds)
    row["1024 worlds, graph"] = robot_steps(make(1024, graph=True), seconds=seconds)
    each = 64 // WORKERS if quick else 1024 // WORKERS
    parallel = ParallelEnv(WORKERS, partial(make, each))
    try:
        row[f"ParallelEnv {WORKERS} x {each}"] = robot_steps(parallel, seconds=seconds)
    finally:
        parallel.close()
    return row | {"reference": REFERENCE[name]}


def run(quick: bool) -> Figures:
    """Measure robot-steps per CPU-second: setting → column → figure."""
    torch.set_num_threads(1)
    return {name: measure(name, quick=quick) for name in SEAS}


if __name__ == "__main__":
    main(run, __doc__)
