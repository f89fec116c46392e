"""Time of one update of each off-policy agent, sampling included, at batches of 64 and 1024.

    python -m benchmarks.agents [--json FILE] [--quick]

CPU time of one thread, minima of interleaved runs, which a busy machine disturbs least, with networks of the
published sizes and a replay buffer of 100,000 random transitions with 5 objects; and in graphwalk on 20
nodes, two layers of 32, beside the same agents on `agents.ego`, with the bytes of a stored transition. The
published implementation's figures at 64 were measured on the same kind of machine; ratios to them transfer to
other machines only roughly.

*products* are the matrix products of the update alone, forward and backward, repeated with tensors of the
same shapes: what an update would take if sampling, losses, activations and optimizers were free. This process
keeps freed memory, as the commands of edgewise do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from benchmarks.program import cpu_seconds, main
from tensordict import TensorDict
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import edgewise as ew
from edgewise.algorithms.deciders import Deciders, deciders_of
from edgewise.algorithms.discrete_sac import DiscreteSAC
from edgewise.algorithms.off_policy import OffPolicy
from edgewise.algorithms.registry import algorithm_class, algorithm_config
from edgewise.data.random_policy import RandomPolicy
from edgewise.data.rollout import Rollout
from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.config import EncoderConfig, ValueConfig
from edgewise.systems.marine.models.config import MarineEgoConfig
from edgewise.terminal.machine import keep_memory

PUBLISHED = {"ac-iqn": 22.4, "iqn": 11.1, "ddpg": 12.2, "dqn": 9.4, "sac": 21.3, "rainbow": 23.1}
"""CPU milliseconds of one update of 64 transitions in the published implementation."""

SPEC = EgoSpec()


def seen(count: int) -> TensorDict:
    """Sample views of `count` agents, with half of the slots filled."""
    entries = {
        "self": torch.randn(count, SPEC.own),
        "objects": torch.randn(count, SPEC.slots, SPEC.features),
        "mask": torch.rand(count, SPEC.slots) < 0.5,
    }
    return TensorDict(entries, [count])


def transitions(count: int, *, discrete: bool) -> TensorDict:
    """Sample random transitions as they are stored, of which one in thirty is terminal."""
    entries = {
        "observation": seen(count),
        "action": torch.randint(25, (count,)) if discrete else torch.rand(count, 2) * 2 - 1,
        "reward": torch.randn(count),
        "next_observation": seen(count),
        "span": torch.where(torch.rand(count) > 1 / 30, 1, -1).to(torch.int8),
    }
    return TensorDict(entries, [count])


def ready(name: str, *, batch: int, stored: int, encoder: str = "flat") -> OffPolicy[Any]:
    """Build an agent with a filled replay buffer."""
    discrete = name in ("dqn", "iqn", "rainbow")
    layout = AgentsDiscrete(3, 25) if discrete else AgentsContinuous(3, 2)
    config = algorithm_config(name)(minibatch_size=batch, replay_size=stored)
    agent = algorithm_class(name)(
        Deciders(layout, MarineEgoConfig(encoder=encoder), ego=SPEC, per_agent=True), config=config
    )
    agent.replay_buffer.extend(transitions(stored, discrete=discrete))
    return agent


def on_graph(name: str, *, batch: int) -> OffPolicy[Any]:
    """Build an agent for graphwalk on 20 nodes with a filled replay buffer."""
    env = ew.make_env("graphwalk", num_envs=64, seed=0, num_nodes=20)
    config = algorithm_config(name)(minibatch_size=batch, replay_size=2_000)
    deciders = deciders_of(env, ValueConfig(encoder=EncoderConfig(hidden=32, layers=2)))
    agent = (DiscreteSAC if name == "sac" else algorithm_class(name))(deciders, config=config)
    rollout = Rollout(env, RandomPolicy(env.actions, env.graph), rollout_length=32)
    agent.replay_buffer.extend(agent._transitions.stored(rollout.collect()))
    return agent


class Products(TorchDispatchMode):
    """Records the matrix products in its body; a call repeats them."""

    NAMES = ("mm", "addmm", "bmm", "baddbmm")

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[tuple[Callable[..., Tensor], tuple[Any, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in self.NAMES:
            # The packet rather than its overload, so that a product that writes to a slice allocates instead.
            self.recorded.append((func.overloadpacket, tuple(each.detach().clone() for each in args)))
        return func(*args, **(kwargs or {}))

    def __call__(self) -> None:
        for product, factors in self.recorded:
            product(*factors)


def products_of(agent: OffPolicy[Any]) -> Products:
    """Return the matrix products of one update."""
    with Products() as products:
        agent._update()
    return products


def measure_on_graphs(batch: int, *, stored: int, repeats: int) -> dict[str, float]:
    """Measure milliseconds per update and bytes of a transition, on graphs and on flat observations."""
    names = ("dqn", "rainbow", "iqn", "sac")
    agents = {f"{name} on 20 nodes": on_graph(name, batch=batch) for name in names}
    agents |= {f"{name} on agents.ego": ready(name, batch=batch, stored=stored) for name in names}
    tasks = {name: agent._update for name, agent in agents.items()}
    seconds = cpu_seconds(tasks, repeats, choose=min)
    numbers = {f"{name}_ms": 1e3 * value for name, value in seconds.items()}
    size = {name: float(agent.replay_buffer.bytes_per_transition) for name, agent in agents.items()}
    return numbers | {f"{name}_bytes": value for name, value in size.items() if name.startswith("dqn")}


def measure(encoder: str, batch: int, *, stored: int, repeats: int) -> dict[str, float]:
    """Measure milliseconds per update of each agent, and ratios."""
    agents = {name: ready(name, batch=batch, stored=stored, encoder=encoder) for name in PUBLISHED}
    tasks: dict[str, Callable[[], object]] = {name: agent._update for name, agent in agents.items()}
    for name, agent in agents.items():
        tasks[f"{name} products"] = products_of(agent)
    seconds = cpu_seconds(tasks, repeats, choose=min)
    numbers = {}
    for name, published in PUBLISHED.items():
        per_second = {each: batch / seconds[each] for each in (name, f"{name} products")}
        numbers[f"{name}_ms"] = 1e3 * seconds[name]
        numbers[f"{name}_products_ms"] = 1e3 * seconds[f"{name} products"]
        numbers[f"{name}_transitions_per_second"] = per_second[name]
        numbers[f"{name}_speed_over_published"] = per_second[name] / (64 / published * 1e3)
        numbers[f"{name}_products_speed_over_published"] = per_second[f"{name} products"] / (
            64 / published * 1e3
        )
    return numbers


def run(quick: bool = False) -> dict[str, dict[str, float]]:
    """Measure everything; with `quick` only batches of 64 and few repeats."""
    torch.set_num_threads(1)
    keep_memory()
    torch.manual_seed(0)
    stored, repeats = (2_000, 3) if quick else (100_000, 40)
    found = {"published at 64": {f"{name}_ms": value for name, value in PUBLISHED.items()}}
    for encoder in ("flat", "graph"):
        for batch in (64,) if quick else (64, 1024):
            times = repeats if batch == 64 else repeats // 2
            found[f"{encoder}, {batch}"] = measure(encoder, batch, stored=stored, repeats=times)
    found["20 nodes, 64"] = measure_on_graphs(64, stored=2_000, repeats=repeats)
    return found


if __name__ == "__main__":
    main(run, __doc__)
