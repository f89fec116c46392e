"""Construction problems beside RL4CO and beside a bare loop of torch, at equal width and depth.

    EDGEWISE_RL4CO_PYTHON=... python -m benchmarks.rl4co [--problems tsp20,cvrp20] [--quick] [--json FILE]
    EDGEWISE_RL4CO_PYTHON=... python -m benchmarks.rl4co --minutes 2 --seeds 0,1,2 [--problems tsp20]

RL4CO runs in a process of its own with the Python named by EDGEWISE_RL4CO_PYTHON, which needs rl4co
(`benchmarks/rl4co_peer.py`). All have embeddings of 64 numbers, two layers with four heads and a feed-forward
part of 256, and the same settings of the C allocator. They learn by REINFORCE with ten starts and the mean
over them as baseline (POMO) from 64 instances per update.

The first command prints speeds: training instances, environment steps and decoded instances per CPU second of
one thread. Measurements alternate between the programs. The second lets each learn for some CPU minutes while
its learning rate falls to zero, and prints the gap to a solver on shared instances: LKH (`pip install elkai`)
for round trips, PyVRP (`pip install pyvrp`) for routes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from benchmarks.bare_tsp import BareTSP, train_step
from benchmarks.program import kept_memory
from torch import Tensor

import edgewise as ew
from edgewise.config.decoding import Decoding
from edgewise.config.seeds import derive_seed
from edgewise.data.random_policy import RandomPolicy
from edgewise.evaluation.evaluate import evaluate
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.terminal.machine import keep_memory

VARIABLE = "EDGEWISE_RL4CO_PYTHON"
PEER = Path(__file__).with_name("rl4co_peer.py")
WIDTH, LAYERS, HEADS, HIDDEN, STARTS, BATCH, RATE = 64, 2, 4, 256, 10, 64, 1e-3
PROBLEMS = {"tsp20": ("tsp", 20), "tsp50": ("tsp", 50), "cvrp20": ("cvrp", 20)}
SHARED = derive_seed(1, "shared instances") % 2**31
"""Seed of the shared instances."""
SCALE = 1e6
"""Solvers compute with whole numbers."""


class Peer:
    """RL4CO in a process of its own."""

    def __init__(self, problem: str, size: int, *, seed: int = 0) -> None:
        settings = {
            "problem": problem,
            "size": size,
            "width": WIDTH,
            "layers": LAYERS,
            "heads": HEADS,
            "hidden": HIDDEN,
            "starts": STARTS,
            "batch": BATCH,
            "learning_rate": RATE,
            "seed": seed,
        }
        command = [os.environ[VARIABLE], "-P", str(PEER), json.dumps(settings)]
        one = {**os.environ, "OMP_NUM_THREADS": "1", **kept_memory()}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=one,
        )
        self.facts = self._read()

    def __call__(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Let it carry out one command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise RuntimeError(f"{PEER.name} ended with code {self.process.wait()}: run it by hand to see why")

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def ours(problem: str, size: int, *, seed: int = 0) -> Builder:
    """Return the parts of a run of ours with the shared sizes."""
    name = {"tsp": "num_cities", "cvrp": "num_customers"}[problem]
    config = load_config(
        f"{problem}20-pomo",
        keywords={
            name: size,
            "hidden": WIDTH,
            "layers": LAYERS,
            "heads": HEADS,
            "feed_forward": HIDDEN // WIDTH,
            "starts": STARTS,
            "num_envs": STARTS * BATCH,
            "seed": seed,
        },
    )
    return Builder(config)


def seconds(task: Callable[[], object]) -> float:
    """Return the CPU seconds of a task."""
    begin = time.process_time()
    task()
    return time.process_time() - begin


def speeds(problem: str, size: int, *, quick: bool) -> dict[str, float]:
    """Measure training, stepping and decoding, in turns."""
    peer, builder = Peer(problem, size), ours(problem, size)
    algorithm, collector = builder.algorithm, builder.collector
    algorithm.set_scalar("learning_rate", RATE)
    iterations, rounds = (2, 3) if quick else (8, 7)

    def train() -> None:
        for _ in range(iterations):
            algorithm.learn(collector.collect())

    tasks: dict[str, Callable[[], float]] = {
        "edgewise": lambda: seconds(train),
        "rl4co": lambda: peer("train", iterations=iterations)["seconds"],
    }
    if problem == "tsp":
        bare = BareTSP(width=WIDTH, layers=LAYERS, heads=HEADS, hidden=HIDDEN)
        optimizer = torch.optim.Adam(bare.parameters(), lr=RATE)

        def train_bare() -> None:
            for _ in range(iterations):
                train_step(bare, optimizer, torch.rand(BATCH, size, 2), STARTS)

        tasks["bare"] = lambda: seconds(train_bare)
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            spent = task()
            if turn:
                taken[name].append(spent)
    instances = iterations * BATCH
    found = {f"train_{name}": instances / statistics.median(times) for name, times in taken.items()}
    found |= stepping(builder, peer, rounds=rounds) | decoding(builder, peer, problem, size, quick=quick)
    peer.close()
    return found


def stepping(builder: Builder, peer: Peer, *, rounds: int, worlds: int = 512) -> dict[str, float]:
    """Measure random episodes of both environments, in frames per CPU second."""
    env = builder.env
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    rates: dict[str, list[float]] = {"step_edgewise": [], "step_rl4co": []}
    for _ in range(rounds):
        root, frames, spent = env.new_worlds(worlds), 0, 0.0
        while not root["done"].all():
            acted = policy(root)
            begin = time.process_time()
            root = env.simulate(acted)
            spent += time.process_time() - begin
            frames += worlds
        rates["step_edgewise"].append(frames / spent)
        theirs = peer("step", worlds=worlds)
        rates["step_rl4co"].append(theirs["frames"] / theirs["seconds"])
    return {name: statistics.median(values) for name, values in rates.items()}


def decoding(builder: Builder, peer: Peer, problem: str, size: int, *, quick: bool) -> dict[str, float]:
    """Measure greedy decoding of 200 instances from all starts, in CPU seconds."""
    env = instances_of(problem, size, count=50 if quick else 200, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        file = write_instances(env, problem, seed=1, folder=Path(folder))
        theirs = [peer("decode", file=str(file))["multistart_seconds"] for _ in range(3)]
    mine = [seconds(lambda: costs(builder, env, problem, seed=1, decode="multistart")) for _ in range(3)]
    return {"decode_edgewise": min(mine), "decode_rl4co": min(theirs)}


def instances_of(problem: str, size: int, *, count: int, seed: int) -> Any:
    """Return an environment of shared instances."""
    name = {"tsp": "num_cities", "cvrp": "num_customers"}[problem]
    return ew.make_env(problem, num_envs=count, seed=seed, **{name: size})


def start_of(env: Any, seed: int) -> Any:
    """Return the states in which the shared instances begin."""
    env.set_seed(seed)
    return env.reset()["state"]


def write_instances(env: Any, problem: str, *, seed: int, folder: Path) -> Path:
    """Write shared instances in the form that RL4CO's environment takes."""
    state, file = start_of(env, seed), folder / "instances.json"
    place = state["place"]
    entries: dict[str, Any] = {"locs": place.tolist()}
    if problem == "cvrp":
        entries = {
            "locs": place[:, 1:].tolist(),
            "depot": place[:, 0].tolist(),
            "demand": state["demand"][:, 1:].tolist(),
            "capacity": [[1.0]] * len(place),
        }
    file.write_text(json.dumps(entries))
    return file


def costs(builder: Builder, env: Any, problem: str, *, seed: int, decode: str) -> Tensor:
    """Return the lengths of our policy's solutions of the shared instances, `[B]`."""
    found = evaluate(
        env, builder.algorithm.policy, episodes=env.num_envs, seed=seed, decode=Decoding.parse(decode)
    )
    return torch.from_numpy(found.metrics["tour" if problem == "tsp" else "length"]).double()


def solve(env: Any, problem: str, *, seed: int) -> Tensor:
    """Return the costs that a solver finds, `[B]`."""
    state = start_of(env, seed)
    place = state["place"].double()
    found = []
    for row, distance in enumerate(torch.cdist(place, place)):
        whole = (distance * SCALE).round().long()
        if problem == "tsp":
            import elkai

            tours = [elkai.DistanceMatrix(whole.tolist()).solve_tsp()]
        else:
            demand = (state["demand"][row].double() * env.config.capacity).round().long()
            tours = _routes(whole, demand, capacity=round(env.config.capacity))
        found.append(sum(float(distance[a, b]) for tour in tours for a, b in pairwise(tour)))
    return torch.tensor(found, dtype=torch.float64)


def _routes(distance: Tensor, demand: Tensor, *, capacity: int) -> list[list[int]]:
    """Return the routes that PyVRP finds within a second, each from the depot and back."""
    from pyvrp import Model
    from pyvrp.stop import NoImprovement

    model, count = Model(), len(demand)
    places = [model.add_location(0, 0) for _ in range(count)]
    model.add_depot(places[0])
    for node in range(1, count):
        model.add_client(places[node], delivery=int(demand[node]))
    model.add_vehicle_type(count, capacity=capacity)
    for one in range(count):
        for other in range(count):
            model.add_edge(places[one], places[other], distance=int(distance[one, other]))
    routes = model.solve(stop=NoImprovement(500), seed=0, display=False).best.routes()
    stops = [[str(stop) for stop in route] for route in routes]
    return [[0, *(int(stop[1:]) + 1 for stop in each if stop.startswith("C")), 0] for each in stops]


def gaps(
    problem: str, size: int, *, best: Tensor, minutes: float, seed: int, peers: bool
) -> dict[str, float]:
    """Let both learn for some CPU minutes and return their mean gaps to a solver's costs, in percent.

    Args:
        problem: its name.
        size: of the problem.
        best: costs of the solver, `[B]`.
        minutes: of learning.
        seed: of learning.
        peers: whether RL4CO learns too.
    """
    env = instances_of(problem, size, count=len(best), seed=SHARED)
    found = {"solver": float(best.mean())}
    builder = ours(problem, size, seed=seed)
    algorithm, collector = builder.algorithm, builder.collector
    begin, share, count = time.process_time(), 0.0, 0
    while share < 1:
        algorithm.set_scalar("learning_rate", RATE * (1 - share))
        algorithm.learn(collector.collect())
        count += BATCH
        share = (time.process_time() - begin) / (60 * minutes)
    found["instances_edgewise"] = count
    for decode in ("greedy", "multistart"):
        mine = costs(builder, env, problem, seed=SHARED, decode=decode)
        found[f"{decode}_edgewise"] = float((mine / best - 1).mean() * 100)
    if peers:
        peer = Peer(problem, size, seed=seed)
        found["instances_rl4co"] = peer("learn", seconds=60 * minutes)["instances"]
        with tempfile.TemporaryDirectory() as folder:
            theirs = peer("decode", file=str(write_instances(env, problem, seed=SHARED, folder=Path(folder))))
        peer.close()
        for decode in ("greedy", "multistart"):
            cost = torch.tensor(theirs[decode], dtype=torch.float64)
            found[f"{decode}_rl4co"] = float((cost / best - 1).mean() * 100)
    return found


def show(title: str, found: dict[str, float]) -> None:
    """Print some figures."""
    print(title)
    for key, value in found.items():
        print(f"  {key:24s} {value:12.5g}", flush=True)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="separated by commas")
    parser.add_argument("--minutes", type=float, help="CPU minutes of learning, instead of speeds")
    parser.add_argument("--seeds", default="0", help="with --minutes: random seeds, separated by commas (0)")
    parser.add_argument("--instances", type=int, default=1000, help="shared instances (1000)")
    parser.add_argument("--alone", action="store_true", help="with --minutes: without RL4CO")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="few repeats")
    options = parser.parse_args()
    if VARIABLE not in os.environ and not (options.minutes and options.alone):
        sys.stderr.write(f"skipped: set {VARIABLE} to a Python that has rl4co\n")
        return 0
    torch.set_num_threads(1)
    keep_memory()
    figures = {}
    for name in options.problems.split(","):
        problem, size = PROBLEMS[name]
        if not options.minutes:
            figures[name] = speeds(problem, size, quick=options.quick)
            show(name, figures[name])
            continue
        env = instances_of(problem, size, count=options.instances, seed=SHARED)
        best = solve(env, problem, seed=SHARED)
        for seed in map(int, options.seeds.split(",")):
            title = f"{name}, seed {seed}, {options.minutes:g} CPU-minutes"
            figures[title] = gaps(
                problem, size, best=best, minutes=options.minutes, seed=seed, peers=not options.alone
            )
            show(title, figures[title])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
