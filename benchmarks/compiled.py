"""Compiled against eager: CPU time of learning, of compiling, and of whole runs at a recipe's own length.

    python -m benchmarks.compiled [--json FILE] [--quick] ["CASE" ...]

Each case runs in a process of its own, with an empty cache of compiled code: the same learner eager and as
`training.compile` compiles it, in turn, minima. Compiling is the CPU time of the first calls, child processes
included, beyond that of later ones. For PPO, an iteration collects and learns, and *pays from* is a number of
frames; a whole run is extrapolated to the recipe's length, without evaluation. For off-policy agents, an
update of 256 transitions of marine is timed, and *pays from* is a number of updates: with a graph encoder,
and with their default networks, which pass no messages. `training.compile` refuses the latter; here they are
compiled whole.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

PPO_RECIPES = ("graphwalk-ppo", "swarm-mappo")
AGENTS = ("dqn", "rainbow", "iqn", "ddpg", "sac", "ac-iqn")
COLUMNS = ("eager, s", "compiled, s", "ratio", "compiling, s", "run eager, s", "run compiled, s", "pays from")
WARM_UP = 2


def main() -> None:
    """Measure every case and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help='such as swarm-mappo or "dqn, graph"')
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="graphwalk-ppo alone")
    options = parser.parse_args()
    names = PPO_RECIPES[:1] if options.quick else PPO_RECIPES
    cases = {name: (measure_recipe, (name,)) for name in names}
    if not options.quick:
        for encoder in ("graph", "flat"):
            cases |= {f"{name}, {encoder}": (measure_agent, (name, encoder)) for name in AGENTS}
    figures: dict[str, dict[str, float]] = {}
    context = multiprocessing.get_context("spawn")
    print(f"{'':16s}" + "".join(f"{name:>17s}" for name in COLUMNS), flush=True)
    for name, (task, arguments) in cases.items():
        if options.cases and name not in options.cases:
            continue
        with context.Pool(1, initializer=prepare) as pool:
            figures[name] = found = pool.apply(task, arguments)
        print(f"{name:16s}" + "".join(f"{found.get(each, math.nan):17,.4g}" for each in COLUMNS), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def prepare() -> None:
    """Prepare a process as the commands do, with an empty cache and one thread that compiles."""
    from edgewise.terminal.machine import prepare as prepare_machine

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    prepare_machine(threads=1)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def timed(task: Callable[[], object]) -> float:
    """Return the CPU seconds of a task."""
    start = cpu_seconds()
    task()
    return cpu_seconds() - start


def measure_recipe(name: str) -> dict[str, float]:
    """Measure iterations of a recipe, and its whole run."""
    from edgewise.experiments.build import Builder
    from edgewise.experiments.load import load_config

    builders = {
        wish: Builder(load_config(name, keywords={"training.compile": wish})) for wish in (False, True)
    }

    def iterate(wish: bool) -> None:
        builders[wish].algorithm.learn(builders[wish].collector.collect())

    config = builders[True].config
    frames = builders[True].env.num_envs * config.training.rollout_length
    count = config.training.total_frames / frames
    found = compare(iterate, repeats=3)
    return found | {
        "run eager, s": found["eager, s"] * count,
        "run compiled, s": found["compiled, s"] * count + found["compiling, s"],
        "pays from": found["pays from"] * frames,
    }


def measure_agent(name: str, encoder: str) -> dict[str, float]:
    """Measure updates of an off-policy agent."""
    from benchmarks.agents import ready

    from edgewise.experiments.compilation import trunks_of

    agents = {wish: ready(name, batch=256, stored=20_000, encoder=encoder) for wish in (False, True)}
    compiled = agents[True]
    whole = (*compiled.networks.children(), *compiled.targets.children())
    for part in trunks_of(compiled) or whole:
        part.compile(dynamic=encoder == "graph")
    return compare(lambda wish: agents[wish]._update(), repeats=20)


def compare(step: Callable[[bool], object], *, repeats: int) -> dict[str, float]:
    """Measure a step, eager with False and compiled with True."""
    first = {wish: sum(timed(partial(step, wish)) for _ in range(WARM_UP)) for wish in (False, True)}
    taken: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeats):
        for wish, times in taken.items():
            times.append(timed(partial(step, wish)))
    eager, compiled = min(taken[False]), min(taken[True])
    compiling = first[True] - first[False]
    return {
        "eager, s": eager,
        "compiled, s": compiled,
        "ratio": eager / compiled,
        "compiling, s": compiling,
        "pays from": compiling / (eager - compiled) if eager > compiled else math.inf,
    }


if __name__ == "__main__":
    main()
