"""Overhead of a batched step: our base environment and rollout compared with TorchRL's.

    python benchmarks/stepping.py [--json FILE] [--quick]

CPU time of one thread, medians of interleaved runs; ratios transfer to other machines, microseconds do not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torchrl.collectors import Collector
from torchrl.envs import EnvBase

from edgewise.config.model import Config
from edgewise.data.random_policy import RandomPolicy
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.spec import GraphSpec


class IdleConfig(Config):
    max_steps: int = 20


class IdleEnv(GraphEnv[IdleConfig]):
    """An environment that does almost nothing, so that the overhead remains."""

    def setup(self) -> None:
        self.graph = GraphSpec(8, 4)
        self.actions = ChooseNode()

    def spawn(self, count):
        age = torch.randint(0, 20, (count,), generator=self.generator)
        index = torch.zeros(count, 2, 0, dtype=torch.int64)
        mask = torch.ones(count, 8, dtype=torch.bool)
        return {
            "age": age,
            "index": index,
            "none": index[:, 0].bool(),
            "mask": mask,
            "x": torch.rand(count, 8, 4),
        }

    def advance(self, state, action):
        return Transition({"age": state["age"] + 1}, reward=action.float(), terminated=state["age"] > 20)

    def observe(self, state):
        return {
            "graph": {
                "x": state["x"],
                "node_mask": state["mask"],
                "edge_index": state["index"],
                "edge_mask": state["none"],
            }
        }


class PlainIdleEnv(IdleEnv):
    """The same environment with TorchRL's own stepping and resets."""

    step = EnvBase.step
    step_mdp = EnvBase.step_mdp
    _step_mdp = EnvBase._step_mdp
    maybe_reset = EnvBase.maybe_reset
    _reset_proc_data = EnvBase._reset_proc_data


def stepper(env: GraphEnv) -> Callable[[], None]:
    """Build one step of all worlds, with resets."""
    action = torch.zeros(env.num_envs, dtype=torch.int64)
    root = [env.reset()]

    def step() -> None:
        _, root[0] = env.step_and_maybe_reset(root[0].set("action", action))

    return step


def problem(env: GraphEnv) -> Callable[[], None]:
    """Build the environment's own work of a step, without resets."""
    root = env.rand_action(env.reset())
    state, action = root["state"], root["action"]

    def step() -> None:
        env.advance(state, action)
        env.observe(state)

    return step


def collecting(worlds: int, steps: int) -> dict[str, Callable[[], None]]:
    """Build one batch with our rollout and one with TorchRL's collector, same policy and environment."""
    env = IdleEnv(IdleConfig(), num_envs=worlds, seed=0)
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    rollout = Rollout(env, policy, rollout_length=steps)
    other = IdleEnv(IdleConfig(), num_envs=worlds, seed=0)
    collector = Collector(
        other, policy, frames_per_batch=worlds * steps, total_frames=-1, track_traj_ids=False
    )
    batches = iter(collector)
    return {"rollout": lambda: rollout.collect(), "collector": lambda: next(batches)}


def measure(ways: dict[str, Callable[[], None]], *, calls: int, rounds: int) -> dict[str, float]:
    """Measure the median CPU microseconds per call of each task, interleaved."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            start = time.process_time()
            for _ in range(calls):
                way()
            times[name].append((time.process_time() - start) / calls * 1e6)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rounds, steps, results = (3 if options.quick else 9), 32, []
    heads = ("worlds", "problem", "ours", "TorchRL", "rollout/step", "collector/step")
    print("  ".join(head.rjust(width) for head, width in zip(heads, (6, 8, 8, 8, 12, 14), strict=True)))
    for worlds in (1, 64, 1024):
        ways = {
            "problem": problem(IdleEnv(IdleConfig(), num_envs=worlds, seed=0)),
            "ours": stepper(IdleEnv(IdleConfig(), num_envs=worlds, seed=0)),
            "torchrl": stepper(PlainIdleEnv(IdleConfig(), num_envs=worlds, seed=0)),
        }
        row = {"worlds": worlds, **measure(ways, calls=60, rounds=rounds)}
        batches = measure(collecting(worlds, steps), calls=2, rounds=rounds)
        row |= {f"{name}_per_step": value / steps for name, value in batches.items()}
        results.append(row)
        print(
            f"{worlds:>6}  {row['problem']:8.0f}  {row['ours']:8.0f}  {row['torchrl']:8.0f}"
            f"  {row['rollout_per_step']:12.0f}  {row['collector_per_step']:14.0f}"
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
