"""Stable-Baselines3's PPO on CartPole, by iterations; started by `benchmarks.cartpole` with its Python.

    python -P benchmarks/cartpole_peer.py '{"worlds": 8, "length": 128, "minibatch": 256, ...}'

It imports nothing of this project. Prints one JSON line of facts, then the CPU seconds of one
iteration for every line of its input.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import gymnasium
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env


class Stops(BaseCallback):
    """Waits for a line of input before every iteration, and prints the seconds of the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.begin: float | None = None

    def _on_rollout_start(self) -> None:
        if self.begin is not None:
            print(json.dumps({"seconds": time.process_time() - self.begin}), flush=True)
        if not sys.stdin.readline():
            raise SystemExit
        self.begin = time.process_time()

    def _on_step(self) -> bool:
        return True


def main() -> None:
    """Train until the input ends."""
    torch.set_num_threads(1)
    settings: dict[str, Any] = json.loads(sys.argv[1])
    algorithm = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=settings["worlds"], seed=0),
        n_steps=settings["length"],
        batch_size=settings["minibatch"],
        n_epochs=settings["epochs"],
        policy_kwargs={"net_arch": {name: [settings["width"]] * settings["layers"] for name in ("pi", "vf")}},
        device="cpu",
        seed=0,
        verbose=0,
    )
    facts = {
        "stable_baselines3": stable_baselines3.__version__,
        "gymnasium": gymnasium.__version__,
        "torch": torch.__version__,
        "parameters": sum(each.numel() for each in algorithm.policy.parameters()),
    }
    print(json.dumps(facts), flush=True)
    algorithm.learn(10**9, callback=Stops(), log_interval=1)


if __name__ == "__main__":
    main()
