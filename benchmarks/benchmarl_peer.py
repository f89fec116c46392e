"""CPU seconds of BenchMARL on VMAS navigation, iteration by iteration; started by `benchmarks.benchmarl`.

    python -P benchmarks/benchmarl_peer.py \
        '{"worlds": 60, "frames": 6000, "epochs": 4, "minibatch": 2000, "critic": "node"}'

It imports nothing of this project, so any Python with benchmarl, vmas and torch_geometric can run it. Prints
one JSON line of facts, then for every line of its input one iteration as `{"collecting": s, "learning": s}`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import torch
import torch_geometric
from benchmarl.algorithms import IppoConfig, MappoConfig
from benchmarl.environments import VmasTask
from benchmarl.experiment import Callback, Experiment, ExperimentConfig
from benchmarl.models import GnnConfig, MlpConfig, SequenceModelConfig
from torch import nn

WIDTH = 64
CONV = {"add_self_loops": False, "residual": True}
"""A node sees itself by a residual instead of a loop, in both libraries."""


def network() -> SequenceModelConfig:
    """Return one GATv2 layer on the complete graph and an MLP with one hidden layer."""
    conv = GnnConfig(
        topology="full",
        self_loops=False,
        gnn_class=torch_geometric.nn.GATv2Conv,
        gnn_kwargs=dict(CONV),
    )
    head = MlpConfig(num_cells=[WIDTH], layer_class=nn.Linear, activation_class=nn.ReLU)
    return SequenceModelConfig(model_configs=[conv, head], intermediate_sizes=[WIDTH])


class Stopwatch(Callback):
    """Prints CPU seconds of each iteration, and waits for a line of input before the next."""

    def __init__(self) -> None:
        super().__init__()
        self.start = self.collected = 0.0

    def wait(self) -> None:
        """Wait for the next line; end the process at the end of the input."""
        if not sys.stdin.readline():
            sys.exit(0)
        self.start = time.process_time()

    def on_batch_collected(self, batch: Any) -> None:  # noqa: ARG002
        self.collected = time.process_time()

    def on_train_end(self, training_td: Any, group: str) -> None:  # noqa: ARG002
        spent = {"collecting": self.collected - self.start, "learning": time.process_time() - self.collected}
        print(json.dumps(spent), flush=True)
        self.wait()


def build(settings: dict[str, Any], folder: str) -> tuple[Experiment, Stopwatch]:
    """Build the experiment with the given number of worlds, frames per batch, epochs and minibatch size.

    With the critic `node` every agent has its value (IPPO), with `pooled` the team has one (MAPPO).
    """
    algorithm = (IppoConfig if settings["critic"] == "node" else MappoConfig).get_from_yaml()
    config = ExperimentConfig.get_from_yaml()
    config.max_n_iters, config.max_n_frames = 1_000_000, None
    config.on_policy_collected_frames_per_batch = settings["frames"]
    config.on_policy_n_envs_per_worker = settings["worlds"]
    config.on_policy_n_minibatch_iters = settings["epochs"]
    config.on_policy_minibatch_size = settings["minibatch"]
    config.evaluation, config.render, config.loggers, config.create_json = False, False, [], False
    config.save_folder = folder
    watch = Stopwatch()
    experiment = Experiment(
        task=VmasTask.NAVIGATION.get_from_yaml(),
        algorithm_config=algorithm,
        model_config=network(),
        critic_model_config=network(),
        seed=0,
        config=config,
        callbacks=[watch],
    )
    return experiment, watch


def main() -> None:
    """Announce versions, parameters and inputs, then run an iteration for every line of input."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        experiment, watch = build(json.loads(sys.argv[1]), folder)
        loss = experiment.losses["agents"]
        seen = experiment.observation_spec["agents", "observation"].shape
        facts = {
            "parameters": sum(each.numel() for each in loss.parameters()),
            "agents": seen[-2],
            "features": seen[-1],
        }
        print(json.dumps(facts), flush=True)
        watch.wait()
        experiment.run()


if __name__ == "__main__":
    main()
