"""PPO with an MLP on Gymnasium's CartPole, beside Stable-Baselines3 with the same settings.

    EDGEWISE_SB3_PYTHON=... python -m benchmarks.cartpole [--quick] [--json FILE]

Stable-Baselines3 runs in a process of its own, with the Python named by EDGEWISE_SB3_PYTHON, which needs
stable-baselines3 (`benchmarks/cartpole_peer.py`). Both have the same worlds, rollout lengths, minibatches and
epochs, and step worlds of Gymnasium one after the other. Actor and critic of ours have three linear layers of
64 before the output: two of the encoder, one of the head. Stable-Baselines3 is measured with three as well,
and with its usual two, which are half the products. What is timed is whole iterations: collecting, learning,
and each library's own meters and logs, without evaluations. Both have the same settings of the C allocator.
Iterations alternate; figures are medians of frames per CPU-second of one thread. Without the variable, ours
alone is measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from benchmarks.program import Figures, kept_memory, main

import edgewise as ew
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.terminal.machine import keep_memory
from edgewise.training.iteration import Iteration

VARIABLE = "EDGEWISE_SB3_PYTHON"
PEER = Path(__file__).with_name("cartpole_peer.py")
PEER_NAME = "Stable-Baselines3"
WIDTH = 64
SETTINGS: dict[str, dict[str, int]] = {
    "8 worlds, minibatch 256": {"worlds": 8, "length": 128, "minibatch": 256, "epochs": 10},
    "8 worlds, minibatch 64": {"worlds": 8, "length": 128, "minibatch": 64, "epochs": 10},
    "64 worlds, minibatch 512": {"worlds": 64, "length": 32, "minibatch": 512, "epochs": 4},
    "1 world, minibatch 64": {"worlds": 1, "length": 2048, "minibatch": 64, "epochs": 10},
}

CartPole = ew.from_gymnasium("CartPole-v1", name="CartPole")


class Ours:
    """Iterations of a run of ours."""

    def __init__(self, settings: dict[str, int], folder: Path) -> None:
        config = load_config(
            CartPole,
            keywords={
                "model.encoder.kind": "mlp",
                "model.encoder.layers": 1,
                "model.encoder.hidden": WIDTH,
                "head_hidden": (WIDTH,),
                "critic": "node",
                "num_envs": settings["worlds"],
                "rollout_length": settings["length"],
                "minibatch_size": settings["minibatch"],
                "epochs": settings["epochs"],
            },
        )
        parts = Builder(config).parts()
        self.iteration, self.frames = Iteration(config.training, parts, folder), 0
        self.parameters = sum(each.numel() for each in parts.algorithm.actor_critic.parameters())

    def __call__(self) -> float:
        """Return the CPU seconds of an iteration."""
        begin = time.process_time()
        size, _ = self.iteration.next(self.frames)
        self.frames += size
        return time.process_time() - begin


class Peer:
    """Iterations of Stable-Baselines3 in a process of its own."""

    def __init__(self, settings: dict[str, int], *, layers: int) -> None:
        size = {"width": WIDTH, "layers": layers}
        command = [os.environ[VARIABLE], "-P", str(PEER), json.dumps({**settings, **size})]
        one = {**os.environ, "OMP_NUM_THREADS": "1", **kept_memory()}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one
        )
        self.facts = self._read()

    def __call__(self) -> float:
        """Return the CPU seconds of an iteration."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._read()["seconds"])

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


def measure(settings: dict[str, int], folder: Path, *, repeats: int) -> dict[str, float]:
    """Measure frames per CPU-second of both, in turn; the first two iterations are a warm-up."""
    contenders: dict[str, Ours | Peer] = {"edgewise": Ours(settings, folder)}
    if os.environ.get(VARIABLE):
        contenders |= {f"{PEER_NAME}, {layers} layers": Peer(settings, layers=layers) for layers in (3, 2)}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats + 2):
        for name, iterate in contenders.items():
            taken[name].append(iterate())
    frames = settings["worlds"] * settings["length"]
    speed = {name: frames / statistics.median(seconds[2:]) for name, seconds in taken.items()}
    found = {f"{name}, frames per CPU-s": value for name, value in speed.items()}
    for name, contender in contenders.items():
        if isinstance(contender, Peer):
            print(name, contender.facts)
            found[f"ratio to {name}"] = speed["edgewise"] / speed[name]
            contender.close()
    return found


def run(quick: bool = False) -> Figures:
    """Measure every setting; `quick` one of them, with few iterations."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    keep_memory()
    chosen = dict(list(SETTINGS.items())[:1]) if quick else SETTINGS
    with tempfile.TemporaryDirectory() as folder:
        return {
            name: measure(settings, Path(folder), repeats=3 if quick else 9)
            for name, settings in chosen.items()
        }


if __name__ == "__main__":
    main(run, __doc__)
