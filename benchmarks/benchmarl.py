"""Training speed beside BenchMARL: the same network, inputs, batch, epochs and minibatches in both.

    EDGEWISE_BENCHMARL_PYTHON=... python -m benchmarks.benchmarl [--json FILE] [--quick]

BenchMARL runs in a process of its own with the Python named by EDGEWISE_BENCHMARL_PYTHON, which needs
benchmarl, vmas and torch_geometric (`benchmarks/benchmarl_peer.py`). Both libraries train three agents that
see 18 numbers each (position, velocity, goal, twelve distances of a range finder) on a complete graph: in
VMAS navigation there, in a swarm with the same observation here. Actor and critic are one GATv2 layer and an
MLP each, with the same parameters. The critic values every agent, here and in BenchMARL's IPPO (`node`);
in its MAPPO it values the team once, after pooling, which is a little less work (`pooled`). Iterations
alternate; CPU time of one thread, medians. Both processes keep freed memory, as the commands of edgewise do.

*networks* is the floor of eager kernels: forward and backward of both networks alone, on a minibatch whose
edges are ready, times the number of minibatches.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from benchmarks.program import Figures, kept_memory, main
from tensordict import TensorDict
from torch import Tensor
from torch_geometric.nn import GATv2Conv

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.envs.entries import Entries
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.models.actor_critic import ActorCritic, make_actor_critic
from edgewise.models.bridge import union
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.plugins import register
from edgewise.systems.swarm import dynamics
from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.env import SwarmEnv
from edgewise.terminal.machine import keep_memory

PEER = Path(__file__).with_name("benchmarl_peer.py")
VARIABLE = "EDGEWISE_BENCHMARL_PYTHON"
AGENTS, RAYS, RANGE, WIDTH = 3, 12, 0.35, 64
FRAMES, EPOCHS, EPISODE = 6000, 4, 100
FEATURES = 6 + RAYS


def ranges(position: Tensor) -> Tensor:
    """Measure the distance to the nearest other agent along each ray, at most `RANGE`, `[B, A, RAYS]`."""
    angle = torch.arange(RAYS, device=position.device) * (2 * math.pi / RAYS)
    ray = torch.stack((angle.cos(), angle.sin()))
    apart = position.unsqueeze(-3) - position.unsqueeze(-2)
    along = apart @ ray
    half_chord = (dynamics.DIAMETER / 2) ** 2 - apart.square().sum(-1, keepdim=True) + along.square()
    hit = (along > 0) & (half_chord > 0)
    distance = torch.where(hit, along - half_chord.clamp(min=0).sqrt(), RANGE)
    return distance.amin(-2).clamp(max=RANGE)


class NavigationEnv(SwarmEnv):
    """A swarm on a complete graph, in which each agent observes 18 numbers."""

    def setup(self) -> None:
        """Replace edges within a radius by a constant topology."""
        super().setup()
        ends = [(i, j) for i in range(AGENTS) for j in range(AGENTS) if i != j]
        self.graph = GraphSpec(AGENTS, FEATURES, edges=Topology(TopologyBank.from_edge_lists([ends])))

    def observe(self, state: TensorDict) -> Entries:
        """Return position, velocity, offset to the goal and the range finder of each agent."""
        position = state["position"]
        seen = (position, state["velocity"], state["goal"] - position, ranges(position))
        graph = {
            "x": torch.cat(seen, -1),
            "node_mask": state["active"],
            "topology": torch.zeros(len(position), dtype=torch.int64, device=position.device),
        }
        return {"graph": graph, "metrics": super().observe(state)["metrics"]}


class OneGATv2(GraphEncoder):
    """A single GATv2 layer, as in BenchMARL."""

    def __init__(self, graph: GraphSpec, config: EncoderConfig) -> None:
        super().__init__(graph, config)
        self.conv = GATv2Conv(graph.node_features, config.hidden, add_self_loops=False, residual=True)

    def forward(self, graph: TensorDict) -> Tensor:
        flat = union(graph, self.graph)
        return flat.nodes(self.conv(flat.x, flat.edge_index))

    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        return {"output/rms": self(graph).square().mean().sqrt()}


def build(worlds: int, minibatch: int) -> tuple[PPO, Rollout]:
    """Build worlds and an algorithm with BenchMARL's defaults."""
    torch.manual_seed(0)
    settings = SwarmConfig(
        num_agents=AGENTS, num_obstacles=0, max_steps=EPISODE, continuous=True, reward="individual"
    )
    env = NavigationEnv(settings, num_envs=worlds, seed=0)
    encoder = EncoderConfig(kind="one-gatv2", hidden=WIDTH, heads=1)
    model = ModelConfig(encoder=encoder, critic="node", head_hidden=(WIDTH,))
    config = PPOConfig(
        learning_rate=5e-5,
        lmbda=0.9,
        epochs=EPOCHS,
        minibatch_size=minibatch,
        value_coefficient=1.0,
        entropy_coefficient=0.0,
        max_grad_norm=5.0,
    )
    algorithm = PPO(make_actor_critic(env.graph, env.actions, model), config)
    algorithm.optimizer.param_groups[0]["eps"] = 1e-6
    return algorithm, Rollout(env, algorithm.behaviour, rollout_length=FRAMES // worlds)


def bare_networks(model: ActorCritic, minibatch: int) -> Callable[[], None]:
    """Return forward and backward of both networks alone, with edges that are ready."""
    x = torch.randn(minibatch * AGENTS, FEATURES)
    pairs = torch.tensor([(i, j) for i in range(AGENTS) for j in range(AGENTS) if i != j]).T
    index = (pairs.unsqueeze(1) + AGENTS * torch.arange(minibatch).view(1, -1, 1)).flatten(1)
    parts: list[tuple[Any, Any]] = [
        (model.actor.encoder, model.actor.head.parameterise),
        (model.critic.encoder, model.critic.value),
    ]

    def once() -> None:
        sum(head(encoder.conv(x, index)).sum() for encoder, head in parts).backward()
        model.zero_grad()

    return once


def iteration(algorithm: PPO, rollout: Rollout) -> dict[str, float]:
    """Measure CPU seconds of collecting and of learning."""
    start = time.process_time()
    batch = rollout.collect()
    collected = time.process_time()
    algorithm.learn(batch)
    return {"collecting": collected - start, "learning": time.process_time() - collected}


@contextmanager
def peer(settings: dict[str, Any]) -> Iterator[tuple[dict[str, int], Callable[[], dict[str, float]]]]:
    """Start BenchMARL; yield its facts and a function that runs one iteration of it."""
    command = [os.environ[VARIABLE], "-P", str(PEER), json.dumps(settings)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**environment, "OMP_NUM_THREADS": "1", **kept_memory()},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def answer() -> dict[str, Any]:
            for line in stdout:
                if line.startswith("{"):
                    found: dict[str, Any] = json.loads(line)
                    return found
            raise SystemExit(f"{' '.join(command)} ended: run it alone to see why")

        def step() -> dict[str, float]:
            stdin.write("\n")
            stdin.flush()
            return answer()

        yield answer(), step


def measure(worlds: int, minibatch: int, *, critic: str, repeats: int) -> dict[str, float]:
    """Measure both libraries in turn, and the networks alone."""
    algorithm, rollout = build(worlds, minibatch)
    networks = bare_networks(algorithm.actor_critic, minibatch)
    settings = {
        "worlds": worlds,
        "frames": FRAMES,
        "epochs": EPOCHS,
        "minibatch": minibatch,
        "critic": critic,
    }
    minibatches = EPOCHS * FRAMES // minibatch
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    floor: list[float] = []
    with peer(settings) as (facts, step):
        assert (facts["agents"], facts["features"]) == (AGENTS, FEATURES)
        for _ in range(repeats + 1):
            ours.append(iteration(algorithm, rollout))
            theirs.append(step())
            start = time.process_time()
            for _ in range(minibatches):
                networks()
            floor.append(time.process_time() - start)
    return summary(
        {"edgewise": ours[1:], "BenchMARL": theirs[1:]},
        networks_alone=statistics.median(floor[1:]),
        parameters={
            "edgewise": sum(each.numel() for each in algorithm.actor_critic.parameters()),
            "BenchMARL": facts["parameters"],
        },
    )


def summary(
    found: dict[str, list[dict[str, float]]], *, networks_alone: float, parameters: dict[str, int]
) -> dict[str, float]:
    """Return medians and ratios of the CPU seconds of iterations by library."""
    middle = {
        f"{who} {what}": statistics.median(each[what] for each in iterations)
        for who, iterations in found.items()
        for what in ("collecting", "learning")
    }
    whole = {who: middle[f"{who} collecting"] + middle[f"{who} learning"] for who in found}
    return {
        **{f"{who}, parameters": count for who, count in parameters.items()},
        **{f"{name}, s": value for name, value in middle.items()},
        "networks, s": networks_alone,
        **{f"{who}, frames/s": FRAMES / value for who, value in whole.items()},
        "end to end": whole["BenchMARL"] / whole["edgewise"],
        "collecting": middle["BenchMARL collecting"] / middle["edgewise collecting"],
        "learning": middle["BenchMARL learning"] / middle["edgewise learning"],
        "edgewise learning / networks": middle["edgewise learning"] / networks_alone,
        "BenchMARL learning / networks": middle["BenchMARL learning"] / networks_alone,
    }


def run(quick: bool = False) -> Figures:
    """Measure 60 and 600 worlds; the ratios are above 1 where edgewise is faster."""
    if VARIABLE not in os.environ:
        raise SystemExit(f"{VARIABLE} is not set: name a Python with benchmarl, vmas and torch_geometric")
    torch.set_num_threads(1)
    keep_memory()
    register(OneGATv2, name="one-gatv2")
    cases = [(2000, "node"), (2000, "pooled"), (400, "node")]
    return {
        f"{worlds} worlds, minibatches of {minibatch}, {critic} critic in BenchMARL": measure(
            worlds, minibatch, critic=critic, repeats=2 if quick else 7
        )
        for minibatch, critic in (cases[:1] if quick else cases)
        for worlds in (60, 600)
    }


if __name__ == "__main__":
    main(run, __doc__)
