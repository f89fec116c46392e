"""Operations of a step: tensor operations of environments, and calls of policies in self-play.

    python -m benchmarks.operations [--json FILE] [--quick]

Steps of few worlds are bound by the number of operations, not by their size. Operations are those that
PyTorch dispatches in `step_and_maybe_reset`, views included; steps per CPU-second are of one thread, the best
of several runs of 16 steps, under a random policy. `countries` is that of `benchmarks.reasoning`; the best
published engine makes 1,211 steps per CPU-second there. `hex-selfplay` collects 32 steps of the recipe
against two snapshots and counts the calls of all policies.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from benchmarks.program import main
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from edgewise.envs.registry import make_env
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config

STEPS = 16
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "countries, 1,024 worlds": (
        "reasoning",
        1024,
        {"data": "countries_s3", "max_successors": 20, "view": "state"},
    ),
    "countries, 4,096 worlds": (
        "reasoning",
        4096,
        {"data": "countries_s3", "max_successors": 20, "view": "state"},
    ),
    "marine, 128 worlds": (
        "marine",
        128,
        {"actions": "discrete", "num_robots": 3, "max_steps": 300, "graph_edges": False},
    ),
    "hive, 256 worlds": ("hive", 256, {}),
}
SELF_PLAY_STEPS = 32


class Counter(TorchDispatchMode):
    """Counts the operations in its body."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def stepper(name: str, worlds: int, settings: dict[str, Any]) -> Callable[[int], None]:
    """Build random steps of an environment, with resets."""
    env = make_env(name, num_envs=worlds, seed=0, **settings)
    root = [env.reset()]

    def play(steps: int) -> None:
        for _ in range(steps):
            _, root[0] = env.step_and_maybe_reset(env.rand_action(root[0]))

    return play


def measure(name: str, worlds: int, settings: dict[str, Any], *, repeats: int) -> dict[str, float]:
    """Count operations and measure steps per CPU-second."""
    play = stepper(name, worlds, settings)
    play(2 * STEPS)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        play(STEPS)
        times.append(time.process_time() - start)
    with Counter() as counter:
        play(STEPS)
    return {
        "steps_per_cpu_second": STEPS * worlds / min(times),
        "operations_per_step": counter.count / STEPS,
    }


def policy_calls() -> float:
    """Count the calls of policies in a batch of `hex-selfplay`."""
    collector = Builder(load_config("hex-selfplay")).collector
    collector.rollout_length = SELF_PLAY_STEPS
    calls, draw = [0], collector.pool.player

    def count(*_: Any) -> None:
        calls[0] += 1

    def counted(*arguments: Any, **settings: Any) -> nn.Module:
        player = draw(*arguments, **settings)
        player.register_forward_hook(count)
        return player

    collector.pool.player = counted
    collector._behaviour.register_forward_hook(count)
    collector.collect()
    calls[0] = 0
    collector.collect()
    return float(calls[0])


def run(quick: bool = False) -> dict[str, dict[str, float]]:
    """Measure all cases; with `quick`, with few repeats."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {name: measure(*case, repeats=2 if quick else 12) for name, case in CASES.items()}
    found["hex-selfplay"] = {f"policy_calls_in_{SELF_PLAY_STEPS}_steps": policy_calls()}
    return found


if __name__ == "__main__":
    main(run, __doc__)
