"""Weighted vertex cover on small worlds: mean weights of rules, of trained policies, and of the optimum.

    python -m benchmarks.covers [RUN ...] [--nodes 20] [--episodes 1000] [--seed 77] [--decode greedy]

Watts–Strogatz graphs with 4 neighbours and rewiring .3, weights uniform in [0, 1]: the task of the ICLR 2026
blog post on reinforcement learning with graph networks. The optimum is that of scipy's integer programming.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp

import edgewise as ew
from edgewise.config.decoding import Decoding
from edgewise.envs.policy import acting_in
from edgewise.evaluation.evaluate import evaluate
from edgewise.problems.vertex_cover import BASELINES


def optimum(env: Any, seed: int) -> float:
    """Return the mean weight of the lightest covers."""
    env.set_seed(seed)
    state, found = env.reset()["state"], []
    for adjacent, weight in zip(state["adjacent"], state["weight"].double().numpy(), strict=True):
        edges = adjacent.triu(1).nonzero().numpy()
        ends = np.zeros((len(edges), len(weight)))
        ends[np.arange(len(edges))[:, None], edges] = 1
        solved = milp(weight, constraints=LinearConstraint(ends, lb=1), integrality=1, bounds=Bounds(0, 1))
        found.append(solved.fun)
    return float(np.mean(found))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--nodes", type=int, default=20, help="nodes of a graph (20)")
    parser.add_argument("--episodes", type=int, default=1000, help="instances (1000)")
    parser.add_argument("--seed", type=int, default=77, help="random seed of the instances (77)")
    parser.add_argument("--decode", default="greedy", help="how policies are decoded (greedy)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    env = ew.make_env("vertex_cover", num_envs=options.episodes, num_nodes=options.nodes)
    players: dict[str, Any] = {name: (rule(env), None) for name, rule in BASELINES.items()}
    for run in options.runs:
        players[run.name] = (ew.load_policy(run), Decoding.parse(options.decode))
    print("| policy | mean weight |\n|---|---|")
    for name, (policy, decode) in players.items():
        with acting_in(policy, env):
            found = evaluate(
                env, policy, episodes=options.episodes, seed=options.seed, decode=decode
            ).metrics["weight"]
        print(f"| {name} | {found.mean():.3f} ± {found.std() / len(found) ** 0.5:.3f} |", flush=True)
    print(f"| optimum | {optimum(env, options.seed):.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
