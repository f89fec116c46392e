"""Growth of time and memory of learning with the number of nodes, edges, worlds and steps of a rollout.

    python -m benchmarks.growth [--json FILE] [--quick]

PPO acts and learns in a problem without dynamics: choose a node of a fixed random graph. One quantity grows
at a time, the others stay at 100 nodes, 8 edges per node, 8 worlds and rollouts of 8 steps. Each row is
measured in a process of its own: CPU time of one thread per frame, and growth of the resident memory, while
it collects and learns from two batches, the first as a warm-up. A minibatch has 20,000 nodes, so that memory
for learning does not grow with the batch.

One table is of a graph of 50,000 nodes, at once (0) and in parts (`encoder.part_size`). Edges lead
to nodes with close numbers there, as in a network whose nodes are sorted by place. The last tables compare
1,000 with 100,000 nodes, sorted by place, for each way to give edges: eight nearest neighbours each.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

SMALLEST = {"nodes": 100, "edges": 8, "worlds": 8, "steps": 8, "part": 0}
LARGE = {"nodes": 50_000, "edges": 8, "worlds": 1, "steps": 4}
KINDS = ("topology", "explicit", "radius", "nearest")
WIDE = {"worlds": 1, "by_place": True}
SIZES = {
    "nodes": (10, 100, 1_000, 10_000),
    "edges": (2, 8, 32),
    "worlds": (1, 8, 64, 512),
    "steps": (2, 8, 32, 128),
    "part": (0, 25_000, 5_000, 1_000),
}
QUICK = {"nodes": (10, 100), "worlds": (1, 8), "part": (0, 5_000)}
COLUMNS = ("collecting, ms", "learning, ms", "learning, us per node", "batch, MB", "memory, MB")


def measure(sizes: dict[str, Any]) -> dict[str, float]:
    """Measure one batch of the given sizes, in this process."""
    import edgewise as ew
    from edgewise.algorithms.ppo import PPO
    from edgewise.algorithms.setup import Setup
    from edgewise.data.rollout import Rollout
    from edgewise.graphs.topology import Topology, TopologyBank
    from edgewise.models.actor_critic import make_actor_critic

    torch.set_num_threads(1)
    torch.manual_seed(0)
    nodes, kind = sizes["nodes"], sizes.get("kind", "topology")
    position = places(nodes)
    if "by_place" in sizes:
        exists = torch.ones(1, nodes, dtype=torch.bool)
        found = ew.Nearest(8, ())(TensorDict({"pos": position.unsqueeze(0), "node_mask": exists}, [1]))
        ends = found.index[0][:, found.mask[0]]
    else:
        ends = torch.randint(nodes, (2, nodes * sizes["edges"]))
        if nodes == LARGE["nodes"]:
            ends[1] = (ends[0] + torch.randint(1, 50, ends[0].shape)) % nodes
        ends = torch.unique(ends[:, ends[0] != ends[1]], dim=1)
    sources: dict[str, Callable[[], Any]] = {
        "topology": lambda: Topology(TopologyBank.from_edge_lists([ends])),
        "explicit": lambda: ew.Explicit(ends.shape[1]),
        "radius": lambda: ew.Radius(1.6, (), max_edges=None),
        "nearest": lambda: ew.Nearest(8, ()),
    }

    class GrowthConfig(ew.Config):
        """No settings."""

    class GrowthEnv(ew.GraphEnv[GrowthConfig]):
        """Choose a node; its feature is the reward, and the features are sampled again."""

        def setup(self) -> None:
            by_rule = 2 if kind in ("radius", "nearest") else 0
            self.graph = ew.GraphSpec(nodes, node_features=4, edges=sources[kind](), position_dim=by_rule)
            self.actions = ew.ChooseNode()

        def spawn(self, count: int) -> dict[str, torch.Tensor]:
            return {"x": torch.rand(count, nodes, 4, generator=self.generator)}

        def advance(self, state, action):  # type: ignore[no-untyped-def]
            reward = state["x"][..., 0].gather(1, action.unsqueeze(-1)).squeeze(-1)
            return ew.Transition({"x": state["x"].roll(1, 1)}, reward=reward)

        def observe(self, state):  # type: ignore[no-untyped-def]
            exists = torch.ones(state["x"].shape[:2], dtype=torch.bool)
            count = len(exists)
            given = {
                "topology": {"topology": torch.zeros(count, dtype=torch.int64)},
                "explicit": {
                    "edge_index": ends.expand(count, -1, -1),
                    "edge_mask": torch.ones(count, ends.shape[1], dtype=torch.bool),
                },
            }.get(kind, {"pos": position.expand(count, -1, -1)})
            return {"graph": {"x": state["x"], "node_mask": exists, **given}}

    env = GrowthEnv(GrowthConfig(), num_envs=sizes["worlds"], seed=0)
    encoder = ew.EncoderConfig(hidden=32, layers=2, part_size=sizes["part"] or None)
    model = ew.ModelConfig(encoder=encoder, shared_trunk=True)
    minibatch = max(1, 20_000 // nodes)
    setup = Setup(
        env=env,
        config=ew.PPOConfig(epochs=1, minibatch_size=minibatch),
        model=model,
        make_model=lambda: make_actor_critic(env.graph, env.actions, model),
        make_baseline=None,
        seed=0,
        device="cpu",
    )
    algorithm = PPO.from_setup(setup)
    rollout = Rollout(env, algorithm.behaviour, rollout_length=sizes["steps"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    algorithm.learn(rollout.collect())
    start = time.process_time()
    batch = rollout.collect()
    collected = time.process_time()
    algorithm.learn(batch)
    ended = time.process_time()
    frames = batch.numel()
    leaves = batch.values(include_nested=True, leaves_only=True)
    return {
        "collecting, ms": 1e3 * (collected - start) / frames,
        "learning, ms": 1e3 * (ended - collected) / frames,
        "learning, us per node": 1e6 * (ended - collected) / frames / nodes,
        "batch, MB": sum(leaf.numel() * leaf.element_size() for leaf in leaves) / 2**20,
        "memory, MB": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10,
    }


def places(nodes: int) -> Tensor:
    """Return points about 1 apart, `[N, 2]`, sorted by squares of 8 x 8, which keep neighbours together."""
    side = math.isqrt(nodes - 1) + 1
    number = torch.arange(nodes)
    cell = torch.stack((number // side, number % side), -1)
    square = cell // 8
    order = ((square[:, 0] * side + square[:, 1]) * 64 + cell[:, 0] % 8 * 8 + cell[:, 1] % 8).argsort()
    return cell[order] + 0.3 * torch.rand(nodes, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    context = multiprocessing.get_context("spawn")
    for quantity, sizes in (QUICK if options.quick else SIZES).items():
        print(f"\n{quantity:>8s}", *(f"{name:>22s}" for name in COLUMNS), flush=True)
        for size in sizes:
            with context.Pool(1) as pool:
                given = {**SMALLEST, **(LARGE if quantity == "part" else {}), quantity: size}
                found = pool.apply(measure, (given,))
            figures[f"{size} {quantity}"] = found
            print(f"{size:8d}", *(f"{found[name]:22.4g}" for name in COLUMNS), flush=True)
    for kind in () if options.quick else KINDS:
        print(f"\n{kind:>8s}", *(f"{name:>22s}" for name in COLUMNS), flush=True)
        for size in (1_000, 100_000):
            with context.Pool(1) as pool:
                given = {**SMALLEST, **WIDE, "nodes": size, "steps": max(4, 64_000 // size), "kind": kind}
                found = pool.apply(measure, (given,))
            figures[f"{size} {kind}"] = found
            print(f"{size:8d}", *(f"{found[name]:22.4g}" for name in COLUMNS), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
