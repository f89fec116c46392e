"""New worlds and what enters them: which networks there are, their packets and capacities in each slot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from edgewise.envs.arrivals import invert_row
from edgewise.systems.multihop.config import SHIPPED, MultihopConfig, parse_drawn
from edgewise.systems.multihop.generate import barabasi_network
from edgewise.systems.multihop.instance import Instance, read_instance
from edgewise.systems.multihop.networks import Networks


def load_instances(names: Sequence[str], *, seed: int = 0, load: float = 0.8) -> list[Instance]:
    """The instances that names call for: shipped ones, files, and drawn ones.

    Args:
        names: such as `two-path`, `mine.json` or `barabasi12*20`.
        seed: of the drawn ones; each copy is a network of its own.
        load: of the drawn ones.
    """
    found: list[Instance] = []
    for name in names:
        drawn = parse_drawn(name)
        if drawn is None:
            found.append(read_instance(Path(name) if name.endswith(".json") else SHIPPED / f"{name}.json"))
            continue
        nodes, copies = drawn
        for _ in range(copies):
            found.append(barabasi_network(nodes, seed=seed * 1_000_003 + len(found), load=load))
    return found


def instances_of(config: MultihopConfig) -> list[Instance]:
    """The instances that the settings name."""
    return load_instances(config.networks, seed=config.network_seed, load=config.network_load)


def draw_capacity(networks: Networks, network: Tensor, generator: torch.Generator) -> Tensor:
    """What each link could carry in one slot, `[B, M]`; network `[B]` int64."""
    rate, poisson = networks.rate, networks.poisson_links
    return _draw(rate, networks.capacity_line, poisson=poisson, network=network, generator=generator)


def draw_arrivals(networks: Networks, network: Tensor, generator: torch.Generator) -> Tensor:
    """Packets that enter in one slot, `[B, N, K]`; network `[B]` int64."""
    rate, poisson = networks.source_rate, networks.poisson_arrivals
    packets = _draw(rate, networks.arrival_line, poisson=poisson, network=network, generator=generator)
    pairs = packets.new_zeros(len(network), networks.num_nodes * networks.num_classes)
    entered = pairs.scatter_add(-1, Networks.of(networks.source, network), packets)
    return entered.unflatten(-1, (networks.num_nodes, networks.num_classes))


def _draw(
    rate: Tensor, line: Tensor | None, *, poisson: Tensor, network: Tensor, generator: torch.Generator
) -> Tensor:
    """Packets of one slot: Poisson where a world's network says so, else the rate itself.

    Args:
        rate: `[G, X]`.
        line: `[G * X * T]`, cumulative probabilities end to end, or None where nothing is Poisson.
        poisson: `[G]` bool.
        network: `[B]` int64.
        generator: draws the numbers.

    Returns:
        `[B, X]`.
    """
    mean = Networks.of(rate, network)
    if line is None:
        return mean.clone()
    draw = torch.rand(mean.shape, generator=generator, device=mean.device)
    row = network.unsqueeze(-1) * rate.shape[-1] + torch.arange(rate.shape[-1], device=rate.device)
    drawn = invert_row(draw, row, line=line, terms=len(line) // rate.numel())
    return torch.where(Networks.of(poisson, network).unsqueeze(-1), drawn, mean)


def empty_worlds(network: Tensor, networks: Networks, capacity: Tensor) -> dict[str, Tensor]:
    """New worlds without packets, for each entry of `network` `[B]`; capacity `[B, M]`.

    What a picture needs of the network is kept in the state: `ends` `[B, M, 2]` of the links and `goals`
    `[B, K]` of the classes, -1 where there is none.
    """
    count, device = len(network), network.device
    nothing = torch.zeros(count, dtype=torch.float64, device=device)
    ends = torch.stack((networks.start, networks.end), -1).masked_fill(~networks.link_mask.unsqueeze(-1), -1)
    goals = networks.destination.masked_fill(~networks.class_mask, -1)
    return {
        "network": network,
        "ends": ends.short()[network],
        "goals": goals.short()[network],
        "queues": torch.zeros(count, networks.num_nodes, networks.num_classes, device=device),
        "capacity": capacity,
        "carried": torch.zeros_like(capacity),
        "arrived": nothing,
        "delivered": nothing.clone(),
        "backlog_sum": nothing.clone(),
        "overflow": torch.zeros(count, dtype=torch.bool, device=device),
    }
