"""Batches of graphs of very different sizes: bytes and CPU time per frame, beside graphs of their mean size.

    python -m benchmarks.mixed_sizes [--json FILE]

`mixed` has 63 graphs of 10 nodes and one of 500. `mean` has 64 graphs of the mean number of nodes, 18: about
as many live nodes and no padding, so the cost of live nodes. Both learn with PPO and with DQN. Bytes are
those of a stored frame or transition; times are CPU seconds per frame collected and per frame learned from.
The environment itself computes with padded tensors in both, which is a part of the time of collecting.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from benchmarks.program import Figures, cpu_seconds, main
from tensordict import TensorDict
from torch import Tensor

import edgewise as ew
from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.deciders import deciders_of
from edgewise.algorithms.dqn import DQN
from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.graphs.ragged import stored_bytes
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import ValueConfig
from edgewise.terminal.machine import keep_memory

WORLDS, STEPS, LINKS = 64, 32, 4
SIZES = {"mixed": (500, 10), "mean": (18, 18)}
"""The nodes of the first world, and of every other."""


class MarksConfig(ew.Config):
    """Settings of `MarksEnv`."""

    largest: int = 500
    """Nodes of the first world."""
    others: int = 10
    """Nodes of every other world."""


class MarksEnv(ew.GraphEnv[MarksConfig]):
    """Mark the nodes of a circulant graph; the reward is the number of neighbours without a mark."""

    def setup(self) -> None:
        """Make slots for the largest graph."""
        self.graph = ew.GraphSpec(self.config.largest, 3, edges=ew.Explicit(LINKS * self.config.largest))
        self.actions = ew.ChooseNode()
        self.max_steps = 1_000

    def spawn(self, count: int) -> dict[str, Tensor]:
        """Sample weights; the first world is the largest."""
        nodes = torch.full((count,), self.config.others)
        nodes[0] = self.config.largest
        slots = torch.arange(self.graph.num_nodes)
        return {
            "nodes": nodes,
            "exists": slots < nodes.unsqueeze(-1),
            "weight": torch.rand(count, len(slots), generator=self.generator),
            "marked": torch.zeros(count, len(slots), dtype=torch.bool),
        }

    def advance(self, state: TensorDict, action: Tensor) -> ew.Transition:
        """Change the mark of a node."""
        chosen = action.unsqueeze(-1)
        around = (chosen + torch.tensor([-2, -1, 1, 2])) % state["nodes"].unsqueeze(-1)
        reward = (~state["marked"].gather(1, around)).float().sum(-1)
        marked = state["marked"].scatter(1, chosen, ~state["marked"].gather(1, chosen))
        return ew.Transition({"marked": marked}, reward=reward)

    def observe(self, state: TensorDict) -> dict[str, Any]:
        """Give weights, marks, and edges to four neighbours."""
        slots = torch.arange(self.graph.num_nodes)
        source = slots.repeat_interleave(LINKS)
        shift = torch.tensor([-2, -1, 1, 2]).repeat(len(slots))
        target = (source + shift) % state["nodes"].unsqueeze(-1)
        features = (state["weight"], state["marked"].float(), torch.ones_like(state["weight"]))
        return {
            "graph": {
                "x": torch.stack(features, -1),
                "node_mask": state["exists"],
                "edge_index": torch.stack((source.expand_as(target), target), 1),
                "edge_mask": state["exists"].repeat_interleave(LINKS, 1),
            }
        }

    def mask(self, state: TensorDict) -> Tensor:
        """Allow every node."""
        return state["exists"]


def environment(name: str) -> Any:
    """Return 64 worlds of the sizes called `name`."""
    largest, others = SIZES[name]
    return MarksEnv(MarksConfig(largest=largest, others=others), num_envs=WORLDS, seed=0)


def run(quick: bool) -> Figures:
    """Measure both kinds of batches."""
    torch.set_num_threads(1)
    keep_memory()
    figures: dict[str, dict[str, float]] = {name: {} for name in SIZES}
    tasks: dict[str, Any] = {}
    for name in SIZES:
        torch.manual_seed(0)
        env = environment(name)
        ppo = PPO(make_actor_critic(env.graph, env.actions), PPOConfig(epochs=1, minibatch_size=512))
        rollout = Rollout(env, ppo.behaviour, rollout_length=STEPS)
        batch = rollout.collect().clone()
        figures[name]["ppo, bytes per frame"] = stored_bytes(batch) / batch.numel()
        tasks[f"{name}/ppo, collecting"] = rollout.collect
        tasks[f"{name}/ppo, learning"] = lambda ppo=ppo, batch=batch: ppo.learn(batch)
        config = DQNConfig(replay_size=4_096, learning_starts=0, updates_per_transition=1 / 64)
        dqn = DQN(deciders_of(env, ValueConfig()), config=config)
        dqn.learn(batch)
        figures[name]["dqn, bytes per transition"] = float(dqn.replay_buffer.bytes_per_transition)
        tasks[f"{name}/dqn, learning"] = lambda dqn=dqn, batch=batch: dqn.learn(batch)
    for task, seconds in cpu_seconds(tasks, 3 if quick else 7).items():
        name, what = task.split("/")
        figures[name][f"{what}, µs per frame"] = seconds / (WORLDS * STEPS) * 1e6
    figures["mixed / mean"] = {
        what: figures["mixed"][what] / figures["mean"][what]
        for what in figures["mean"]
        if math.isfinite(figures["mean"][what])
    }
    return figures


if __name__ == "__main__":
    main(run, __doc__)
