"""How features of the whole graph reach its nodes: added before every layer, or by a global node.

    python -m benchmarks.graph_features [SEED ...]

The capacity example is trained by PPO as it is (`u` is added to all nodes before every layer), with a node
more that has `u` as its features and edges to and from all others, and without `u`. Each row is the mean
return of the last checkpoint on the same 400 instances, its 95 % interval and the CPU-seconds of training.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import pad

import edgewise as ew
from edgewise.plugins import use_plugin

FILE = str(Path(__file__).parents[1] / "examples/capacity/capacity.py")
SETTINGS: dict[str, Any] = {
    "algorithm": "ppo",
    "model.encoder": {"hidden": 32, "heads": 2, "layers": 2},
    "num_envs": 64,
    "rollout_length": 16,
    "total_frames": 40_000,
    "learning_rate": 0.001,
    "evaluation.every": None,
    "evaluation.baselines": [],
    "progress": False,
}
Capacity: Any = use_plugin(FILE).CapacityEnv


class EveryLayer(Capacity):  # type: ignore[misc]
    """As it is."""


class GlobalNode(Capacity):  # type: ignore[misc]
    """The features of the graph are those of one node more, with edges to and from all others."""

    def setup(self) -> None:
        super().setup()
        self.own = self.graph
        nodes, edges = self.graph.num_nodes, self.graph.edges.num_edges
        self.graph = ew.GraphSpec(nodes + 1, 4, edges=ew.Explicit(edges + 2 * nodes, 3))

    def spawn(self, count: int) -> Any:
        whole, self.graph = self.graph, self.own
        state = super().spawn(count)
        self.graph = whole
        return state

    def observe(self, state: Any) -> Any:
        seen = super().observe(state)
        graph, exists = seen["graph"], state["exists"]
        count, nodes = exists.shape
        own = torch.cat((torch.ones(count, 1), graph.pop("u"), torch.zeros(count, 1)), -1)
        graph["x"] = torch.cat((pad(graph["x"], (3, 0)), own.unsqueeze(1)), 1)
        graph["node_mask"] = pad(exists, (0, 1), value=True)
        slots, last = torch.arange(nodes).expand(count, -1), torch.full((count, nodes), nodes)
        ends = torch.stack((torch.cat((slots, last), -1), torch.cat((last, slots), -1)), 1)
        graph["edge_index"] = torch.cat((graph["edge_index"], ends), -1)
        graph["edge_mask"] = torch.cat((graph["edge_mask"], exists, exists), -1)
        links = pad(graph["edge_attr"], (0, 1), value=1.0)
        graph["edge_attr"] = torch.cat((links, torch.zeros(count, 2 * nodes, 3)), 1)
        return seen

    def mask(self, state: Any) -> Any:
        exists = state["exists"]
        return {"link": torch.cat((exists, exists, torch.zeros_like(exists), torch.zeros_like(exists)), -1)}


class Without(Capacity):  # type: ignore[misc]
    """Nothing tells the price."""

    def observe(self, state: Any) -> Any:
        seen = super().observe(state)
        return {**seen, "graph": {**seen["graph"], "u": torch.zeros_like(seen["graph"]["u"])}}


def main(seeds: list[int]) -> None:
    """Print a row for every seed and way."""
    for seed in seeds:
        for kind in (EveryLayer, GlobalNode, Without):
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                run = ew.train(kind, folder=Path(folder) / "run", seed=seed, **SETTINGS)
                spent = time.process_time() - began
                shown = run.evaluate(episodes=400, checkpoint="latest").summary()["return"]
            sys.stdout.write(f"seed {seed} {kind.__name__}: {shown}, {spent:.0f} CPU-s\n")
            sys.stdout.flush()


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    main([int(seed) for seed in sys.argv[1:]] or [100, 101, 102])
