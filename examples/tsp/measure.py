"""Measures policies and baselines against optimal tours: `python measure.py runs/tsp20-1 --cities 20,50`.

A policy is decoded in several ways, such as `--decode greedy,sample:16,multistart`.

Optimal tours come from LKH (`pip install elkai`), which nearly always finds the optimum at these sizes.
"""

import argparse
import sys
import time
from itertools import pairwise
from pathlib import Path

import torch
from tsp import BASELINES, TSPEnv

import edgewise as ew

SCALE = 1e6
"""LKH computes with whole numbers."""


def play(env, act, seed):
    """Play one episode in every world of the instances of a seed; return the lengths of the tours `[B]`."""
    env.set_seed(seed)
    root = env.reset()
    while not root["done"].all():
        root = env.step(root.set("action", act(root)))["next"]
    return root["metrics", "tour"]


def optimal(env, seed):
    """Return the lengths of the tours that LKH finds, `[B]`."""
    import elkai

    env.set_seed(seed)
    place = env.reset()["state", "place"].double()
    lengths = []
    for distance in torch.cdist(place, place):
        tour = elkai.DistanceMatrix((distance * SCALE).round().long().tolist()).solve_tsp()
        lengths.append(sum(float(distance[one, other]) for one, other in pairwise(tour)))
    return torch.tensor(lengths)


def decoded(run, decode, cities):
    """Return the function that plays the policy of a run, and keeps the shortest tour of each instance."""

    def lengths(env, seed):
        plugins = [Path(__file__).with_name("tsp.py")]
        count = env.num_envs
        found = ew.evaluate(run, decode=decode, episodes=count, seed=seed, num_cities=cities, plugins=plugins)
        return torch.from_numpy(found.metrics["tour"])

    return lengths


def main():
    """Print a Markdown table of mean tours and gaps to the optimum."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--cities", default="20,50,100", help="numbers of cities, separated by commas")
    parser.add_argument("--episodes", type=int, default=200, help="instances of each size (200)")
    parser.add_argument(
        "--decode",
        default="greedy,sample:16",
        help="ways to decode policies, separated by commas (greedy,sample:16)",
    )
    parser.add_argument("--seed", type=int, default=12345, help="random seed of the instances (12345)")
    options = parser.parse_args()
    try:
        import elkai  # noqa: F401
    except ImportError:
        sys.stderr.write("skipped: optimal tours need LKH; install it with `pip install elkai`\n")
        return 0
    torch.set_num_threads(1)
    sys.stdout.write(
        "| cities | policy | mean tour | gap to the optimum | CPU seconds |\n|---|---|---|---|---|\n"
    )
    for cities in map(int, options.cities.split(",")):
        env = ew.make_env(TSPEnv, num_envs=options.episodes, num_cities=cities)
        best = optimal(env, options.seed)
        for name, lengths in players(options, env, cities).items():
            begin = time.process_time()
            found = lengths(env, options.seed)
            seconds = time.process_time() - begin
            gap = 100 * (found.double() / best - 1)
            error = float(gap.std()) / len(gap) ** 0.5
            sys.stdout.write(
                f"| {cities} | {name} | {float(found.mean()):.3f} | {float(gap.mean()):.2f} ± {error:.2f} % "
                f"| {seconds:.1f} |\n"
            )
            sys.stdout.flush()
        sys.stdout.write(f"| {cities} | LKH | {float(best.mean()):.3f} | 0 % | |\n")
    return 0


def players(options, env, cities):
    """Return functions from an environment and a seed to the lengths of tours, by name."""
    found = {}
    for name, make in BASELINES.items():
        policy = make(env)
        found[name] = lambda env, seed, policy=policy: play(env, lambda root: policy(root)["action"], seed)
    for run in options.runs:
        for decode in options.decode.split(","):
            found[f"{run.name}, {decode}"] = decoded(run, decode, cities)
    return found


if __name__ == "__main__":
    sys.exit(main())
