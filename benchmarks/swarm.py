"""Speed of the swarm in stepping and training: env steps per CPU-second by worlds and team size.

    python -m benchmarks.swarm [--train] [--json FILE] [--quick]

One thread; CPU time of this process and its workers. Stepping includes resets, observation and metrics;
random actions are sampled beforehand. `--train` times whole iterations, collection and learning, with the
reference's hyper-parameters and with the recipe's, also with attention over all pairs (`dense: always`). The
reference's figures were measured on one core with the published code.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torchrl.envs import EnvBase, ParallelEnv

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.env import SwarmEnv
from edgewise.systems.swarm.recipes.mappo import RECIPE

TEAMS = (3, 7, 10, 50)
WORLDS = (1, 128, 1024)
WORKERS = 2
STEPPING_REFERENCE = {3: 1044, 7: 388, 10: 210, 50: 10.5}
TRAINING_REFERENCE = {3: 39.7, 7: 8.0, 10: 4.0}
EPISODE = 25
PUBLISHED = PPOConfig(
    learning_rate=7e-4,
    epochs=10,
    value_coefficient=1.0,
    value_clip=0.2,
    huber_delta=10.0,
    max_grad_norm=10.0,
    normalise_value=True,
)
"""The reference's settings, except the minibatch size, which depends on the team."""


def cpu_seconds() -> float:
    """Return the CPU time of this process and its workers so far."""
    ticks = 0
    for worker in multiprocessing.active_children():
        fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def stepping(env: EnvBase, *, seconds: float) -> float:
    """Measure env steps per CPU-second over whole episodes for `seconds`; the first episode is a warm-up."""
    root, steps, start = env.reset(), 0, 0.0
    actions = [env.rand_action(root)["action"].clone() for _ in range(EPISODE)]
    while not start or cpu_seconds() - start < seconds:
        for action in actions:
            _, root = env.step_and_maybe_reset(root.set("action", action))
        steps, start = (steps + EPISODE, start) if start else (0, cpu_seconds())
    return steps * env.batch_size.numel() / (cpu_seconds() - start)


def worlds_of(team: int, worlds: int) -> SwarmEnv:
    """Build worlds with `team` agents and the reference's three obstacles."""
    return SwarmEnv(SwarmConfig(num_agents=team), num_envs=worlds, seed=0)


def measure_stepping(team: int, *, quick: bool) -> dict[str, float]:
    """Measure one row of the first table."""
    seconds = 0.3 if quick else 2.0
    row = {f"{worlds} worlds": stepping(worlds_of(team, worlds), seconds=seconds) for worlds in WORLDS}
    parallel = ParallelEnv(WORKERS, partial(worlds_of, team, 128 // WORKERS))
    try:
        row[f"ParallelEnv {WORKERS} x {128 // WORKERS}"] = stepping(parallel, seconds=seconds)
    finally:
        parallel.close()
    return row | {"reference": STEPPING_REFERENCE[team]}


def training(team: int, model: ModelConfig, config: PPOConfig, *, worlds: int, iterations: int) -> float:
    """Measure env steps per CPU-second of collection and learning; the first iteration is a warm-up."""
    torch.manual_seed(0)
    env = worlds_of(team, worlds)
    algorithm = PPO(make_actor_critic(env.graph, env.actions, model), config)
    rollout = Rollout(env, algorithm.behaviour, rollout_length=EPISODE)
    start = 0.0
    for _ in range(iterations + 1):
        algorithm.learn(rollout.collect())
        start = start or time.process_time()
    return iterations * rollout.frames / (time.process_time() - start)


def measure_training(team: int, *, quick: bool) -> dict[str, float]:
    """Measure one row of the second table; minibatches of the reference hold 128 agent-steps each."""
    published = PUBLISHED.model_copy(update={"minibatch_size": max(1, 128 // team)})
    narrow = ModelConfig(encoder=EncoderConfig(hidden=16, layers=3, heads=4), head_hidden=(64, 64))
    ours, worlds = RECIPE.config, 8 if quick else 16
    dense = ours.model.encoder.model_copy(update={"dense": "always"})
    sizes = {"worlds": 64 if quick else 256, "iterations": 1 if quick else 3}
    return {
        "reference's settings": training(team, narrow, published, worlds=worlds, iterations=1),
        "recipe's settings": training(team, ours.model, ours.algorithm, **sizes),
        "recipe, all pairs": training(
            team, ours.model.model_copy(update={"encoder": dense}), ours.algorithm, **sizes
        ),
        "reference": TRAINING_REFERENCE[team],
    }


def run(quick: bool, *, train: bool = False) -> dict[str, Any]:
    """Measure both tables: team → column → env steps per CPU-second."""
    teams = TEAMS[:2] if quick else TEAMS
    found: dict[str, Any] = {"stepping": {team: measure_stepping(team, quick=quick) for team in teams}}
    show("env steps per CPU-second", found["stepping"])
    if train:
        teams = tuple(TRAINING_REFERENCE)[:1] if quick else tuple(TRAINING_REFERENCE)
        found["training"] = {team: measure_training(team, quick=quick) for team in teams}
        show("env steps per CPU-second of training", found["training"])
    return found


def show(title: str, rows: dict[int, dict[str, float]]) -> None:
    """Print one table."""
    columns = list(next(iter(rows.values())))
    print(f"\n{title}\n{'agents':>6}" + "".join(f"{name:>22}" for name in columns))
    for team, row in rows.items():
        print(f"{team:>6}" + "".join(f"{row[name]:>22,.0f}" for name in columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--train", action="store_true", help="also time training")
    parser.add_argument("--json", type=Path, help="also write the tables to this file")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, less time each")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = run(options.quick, train=options.train)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
