"""Steps of the reasoning environment per CPU-second, under a random policy.

    python -m benchmarks.reasoning [--data DIR] [--json FILE] [--quick]

CPU time of one thread, with 1, 64 and 1024 worlds: training queries, filtered corruptions, loop detection.
`state` is the environment as rollouts use it; `padded` observes all successors in every step. `parallel` is
TorchRL's ParallelEnv, a process for each of four worlds, CPU time of all processes. DIR holds the folders
`family`, `umls` and `wn18rr`; countries are included in the package.

`random chains` is the state view with 1024 worlds, at most 64 successors, and 100 or 10,000 random chains of
two or three atoms as rules, with the megabytes of the compiled rules and the ratio of both rates.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torchrl.envs import ParallelEnv

from edgewise.envs.registry import make_env
from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset
from edgewise.systems.reasoning.knowledge.rule_files import write_rules
from edgewise.systems.reasoning.knowledge.rules import Rule

BATCHES = (1, 64, 1024)
STEPS = 16
NUMBERS_OF_RULES = (100, 10_000)
DATA: dict[str, dict[str, Any]] = {
    "countries_s3": {"max_successors": 20},
    "family": {"max_successors": 130, "corrupt": "both"},
    "umls": {"max_successors": 64, "corrupt": "both", "rules": "rules_few.txt"},
    "umls, all rules": {"data": "umls", "max_successors": 64, "corrupt": "both"},
    "wn18rr": {"max_successors": 262, "corrupt": "both", "rules": "rules_custom_recall_sorted.txt"},
}


def rate(
    plays: Callable[[], int], *, seconds: float, clock: Callable[[], float] = time.process_time
) -> float:
    """Measure steps per second of `plays`, which returns its number of steps; two calls are a warm-up."""
    plays(), plays()
    steps, start = 0, clock()
    while (spent := clock() - start) < seconds:
        steps += plays()
    return steps / spent


def stepping(fields: dict[str, Any], worlds: int, view: str) -> Callable[[], int]:
    """Build random steps of one environment, with resets."""
    env = make_env("reasoning", num_envs=worlds, seed=0, view=view, **fields)
    root = [env.reset()]

    def play() -> int:
        for _ in range(STEPS):
            _, root[0] = env.step_and_maybe_reset(env.rand_action(root[0]))
        return STEPS * worlds

    return play


def rule_scaling(data: str, *, seconds: float) -> dict[str, float]:
    """Measure steps per CPU-second and megabytes of the rules, with 100 and 10,000 random chains."""
    words, draw, found = load_dataset(data, rules=NO_RULES).vocabulary, Random(0), {}

    def chain(number: int) -> Rule:
        ends = [-1, *(-3 - step for step in range(draw.choice((1, 2)))), -2]
        head, *body = (draw.randint(1, words.num_predicates) for _ in ends)
        atoms = tuple((p, *pair) for p, pair in zip(body, pairwise(ends), strict=True))
        return Rule(f"r{number}", draw.random(), (head, -1, -2), atoms)

    with TemporaryDirectory() as folder:
        for count in NUMBERS_OF_RULES:
            path = Path(folder) / f"{count}.txt"
            write_rules(path, [chain(number) for number in range(count)], words)
            fields = {"data": data, "rules": str(path), "max_successors": 64, "corrupt": "both"}
            found[f"{count} rules"] = rate(stepping(fields, 1024, "state"), seconds=seconds)
            program = make_env("reasoning", num_envs=1, seed=0, view="state", **fields).successors.program
            tensors = (getattr(program, field.name) for field in dataclass_fields(program))
            used = sum(value.nbytes for value in tensors if isinstance(value, torch.Tensor))
            found[f"{count} rules, MB"] = used / 1e6
    few, many = (found[f"{count} rules"] for count in NUMBERS_OF_RULES)
    return {**found, "ratio": few / many}


def parallel(fields: dict[str, Any], *, workers: int, steps: int) -> float:
    """Measure steps per CPU-second of TorchRL's ParallelEnv with a process for each world."""
    env = ParallelEnv(workers, partial(make_env, "reasoning", view="state", **fields), serial_for_single=True)
    start = _all_processes()
    env.rollout(steps, break_when_any_done=False)
    env.close()
    return workers * steps / (_all_processes() - start)


def _all_processes() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def run(quick: bool, folder: Path | None) -> dict[str, dict[str, float]]:
    """Measure steps per CPU-second by dataset and number of worlds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    seconds, found = (0.3 if quick else 3.0), {}
    for name, settings in DATA.items():
        fields = {"data": name, **settings}
        if name != "countries_s3":
            if folder is None:
                continue
            fields["data"] = str(folder / str(fields["data"]))
        figures = {
            f"state, {worlds}": rate(stepping(fields, worlds, "state"), seconds=seconds) for worlds in BATCHES
        }
        figures["padded, 1024"] = rate(stepping(fields, 1024, "padded"), seconds=seconds)
        if name == "countries_s3":
            figures["parallel, 4"] = parallel(fields, workers=4, steps=20 if quick else 400)
        found[name] = figures
    name = "countries_s3" if folder is None else str(folder / "umls")
    found[f"random chains, {Path(name).name}"] = rule_scaling(name, seconds=seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of further datasets")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="short runs")
    options = parser.parse_args()
    figures = run(options.quick, options.data)
    for name, numbers in figures.items():
        print(name)
        for key, value in numbers.items():
            print(f"  {key:20s} {value:12,.0f}" if value >= 100 else f"  {key:20s} {value:12.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
