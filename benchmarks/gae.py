"""Speed of advantage estimation: GraphGAE, TorchRL's GAE and a loop over graphs; and the recursion alone.

    python -m benchmarks.gae [--json FILE] [--quick]

CPU time of one thread, medians of interleaved runs; ratios transfer to other machines, milliseconds do not.
64 worlds, 32 steps, 5 to 20 nodes, a critic of two GATv2 layers of width 64 with 4 heads; a quarter of the
rows contain a termination, an eighth a truncation.

The rows of recipes are whole iterations, collecting and learning, of recipes whose actor and critic share an
encoder: with values that are written while collecting, and with values that are computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from benchmarks.program import cpu_seconds, main
from tensordict import TensorDict
from tensordict.nn import TensorDictModuleBase
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv
from torchrl.objectives.value import GAE
from torchrl.objectives.value.functional import (
    generalized_advantage_estimate,
    vec_generalized_advantage_estimate,
)

from edgewise.algorithms.algorithm import Algorithm
from edgewise.data.collector import Collector
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.bridge import union
from edgewise.objectives.graph_gae import GraphGAE
from edgewise.objectives.returns import generalized_advantage

FEWEST, MOST, FEATURES, DEGREE = 5, 20, 8, 4
SPEC = GraphSpec(MOST, FEATURES, edges=Explicit(MOST * DEGREE))
GAMMA, LMBDA = 0.99, 0.95
SHARED_TRUNK = ("swarm-mappo", "hex-quick")


class Critic(TensorDictModuleBase):
    """GATv2 twice, 64 wide with 4 heads, mean over nodes, one value."""

    def __init__(self, *, compact: bool) -> None:
        super().__init__()
        self.in_keys, self.out_keys, self.compact = ["graph"], ["state_value"], compact
        self.first = GATv2Conv(FEATURES, 16, heads=4, add_self_loops=False)
        self.second = GATv2Conv(64, 16, heads=4, add_self_loops=False)
        self.value = nn.Linear(64, 1)

    def forward(self, tensordict: TensorDict) -> TensorDict:
        flat = union(tensordict["graph"], SPEC, compact=self.compact)
        h = self.first(flat.x, flat.edge_index).relu()
        h = self.second(h, flat.edge_index).relu()
        return tensordict.set("state_value", self.value(flat.pool(h)))


def ragged(*lead: int) -> TensorDict:
    """Sample graphs of `FEWEST` to `MOST` nodes with `DEGREE` edges per node."""
    size = torch.randint(FEWEST, MOST + 1, (*lead, 1))
    return TensorDict(
        {
            "x": torch.randn(*lead, MOST, FEATURES),
            "node_mask": torch.arange(MOST) < size,
            "edge_index": (torch.rand(*lead, 2, MOST * DEGREE) * size.unsqueeze(-1)).long(),
            "edge_mask": torch.arange(MOST * DEGREE) < size * DEGREE,
        },
        lead,
    )


def rollout(worlds: int, steps: int) -> TensorDict:
    """Sample a rollout in which each next graph is the next root unless the episode ends."""
    terminated, truncated = torch.zeros(2, worlds, steps, dtype=torch.bool)
    terminated[: worlds // 4, steps // 2] = True
    truncated[worlds // 4 : worlds // 4 + worlds // 8, steps // 3] = True
    done = terminated | truncated
    roots, after = ragged(worlds, steps), ragged(worlds, steps)
    after[:, :-1] = torch.where(done[:, :-1], after[:, :-1], roots[:, 1:])
    following = {
        "graph": after,
        "reward": torch.randn(worlds, steps, 1),
        "done": done.unsqueeze(-1),
        "terminated": terminated.unsqueeze(-1),
    }
    return TensorDict({"graph": roots, "next": following}, [worlds, steps])


def measure_estimators(worlds: int, steps: int, repeats: int) -> dict[str, float]:
    """Measure milliseconds of each estimator on the same rollout, and the ratios to ours."""
    torch.manual_seed(0)
    data, critic, padded = rollout(worlds, steps), Critic(compact=True), Critic(compact=False)
    padded.load_state_dict(critic.state_dict())
    settings = {"gamma": GAMMA, "lmbda": LMBDA}
    ours = GraphGAE(value_network=critic, **settings)
    at_once = GraphGAE(value_network=critic, value_chunk_size=4 * worlds * steps, **settings)
    fixed = GraphGAE(value_network=padded, boundary_budget=1, **settings)
    theirs = GAE(value_network=critic, deactivate_vmap=True, **settings)
    vmapped = GAE(value_network=padded, **settings)
    few = data["graph"].reshape(-1)[:64]

    @torch.no_grad()
    def one_graph_at_a_time() -> None:
        for graph in few:
            critic(TensorDict({"graph": graph}, []))

    seconds = cpu_seconds(
        {
            "graph_gae": lambda: ours(data.copy()),
            "graph_gae_in_one_chunk": lambda: at_once(data.copy()),
            "graph_gae_fixed_shapes": lambda: fixed(data.copy()),
            "torchrl_without_vmap": lambda: theirs(data.copy()),
            "torchrl_with_vmap": lambda: vmapped(data.copy()),
            "critic_forward": torch.no_grad()(lambda: critic(data.select("graph"))),
            "loop_of_64": one_graph_at_a_time,
        },
        repeats,
    )
    seconds["loop_over_graphs"] = seconds.pop("loop_of_64") * 2 * worlds * steps / len(few)
    numbers = {f"{name}_ms": 1e3 * value for name, value in seconds.items()}
    numbers["graph_gae_over_torchrl_without_vmap"] = seconds["graph_gae"] / seconds["torchrl_without_vmap"]
    numbers["graph_gae_over_torchrl_with_vmap"] = seconds["graph_gae"] / seconds["torchrl_with_vmap"]
    numbers["graph_gae_over_critic_forward"] = seconds["graph_gae"] / seconds["critic_forward"]
    numbers["loop_over_graph_gae"] = seconds["loop_over_graphs"] / seconds["graph_gae"]
    gap = ours(data.copy())["advantage"] - theirs(data.copy())["advantage"]
    return numbers | {"largest_difference_to_torchrl": gap.abs().amax().item()}


def measure_recursion(worlds: int, steps: int, repeats: int) -> dict[str, float]:
    """Measure milliseconds of the recursion alone, with given values."""
    reward, value, next_value = torch.randn(3, worlds, steps, 1)
    done = torch.rand(worlds, steps, 1) < 0.05
    ends = {"done": done, "terminated": done & (torch.rand(worlds, steps, 1) < 0.5)}

    def theirs(estimate: Callable[..., tuple[Tensor, Tensor]]) -> Callable[[], object]:
        return lambda: estimate(GAMMA, LMBDA, value, next_value, reward, time_dim=1, **ends)

    def ours() -> object:
        settings = {"gamma": GAMMA, "lmbda": LMBDA, "time_dim": 1}
        return generalized_advantage(reward, value, next_value=next_value, **ends, **settings)

    seconds = cpu_seconds(
        {
            "scan": ours,
            "torchrl_loop": theirs(generalized_advantage_estimate),
            "torchrl_vectorised": theirs(vec_generalized_advantage_estimate),
        },
        repeats,
    )
    numbers = {f"{name}_ms": 1e3 * value for name, value in seconds.items()}
    numbers["scan_over_torchrl_loop"] = seconds["scan"] / seconds["torchrl_loop"]
    return numbers | {"scan_over_torchrl_vectorised": seconds["scan"] / seconds["torchrl_vectorised"]}


def measure_recipe(name: str, repeats: int) -> dict[str, float]:
    """Measure milliseconds of an iteration with values of collecting, and with values computed again."""
    tasks: dict[str, Callable[[], object]] = {}
    for kept in (True, False):
        builder = Builder(load_config(name))
        algorithm: Any = builder.algorithm
        if not kept:
            algorithm._valuing_actor = None
        collector = builder.collector
        tasks["kept" if kept else "again"] = partial(_iterate, algorithm, collector)
    seconds = cpu_seconds(tasks, repeats)
    numbers = {f"values_{name}_ms": 1e3 * value for name, value in seconds.items()}
    return numbers | {"speed_up": seconds["again"] / seconds["kept"]}


def _iterate(algorithm: Algorithm, collector: Collector) -> None:
    algorithm.learn(collector.collect())


def run(quick: bool = False) -> dict[str, dict[str, float]]:
    """Measure everything with 64 worlds and 32 steps (8 and 8 with `quick`)."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    worlds, steps, repeats = (8, 8, 3) if quick else (64, 32, 7)
    found = {f"estimators {worlds} x {steps}": measure_estimators(worlds, steps, repeats)}
    for rows, length in ((64, 128), (1024, 64), (8, 1024)):
        found[f"recursion {rows} x {length}"] = measure_recursion(rows, length, repeats)
    for name in () if quick else SHARED_TRUNK:
        found[name] = measure_recipe(name, repeats)
    return found


if __name__ == "__main__":
    main(run, __doc__)
