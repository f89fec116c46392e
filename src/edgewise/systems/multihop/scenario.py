"""Networks of a run, initial states, and the random arrivals and capacities of a slot."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from edgewise.envs.arrivals import invert_row
from edgewise.envs.ranges import RealNumbers, lower_bound, upper_bound
from edgewise.systems.multihop.config import SHIPPED, MultihopSettings, parse_drawn
from edgewise.systems.multihop.networks.batch import Networks
from edgewise.systems.multihop.networks.generate import barabasi_network
from edgewise.systems.multihop.networks.instance import Instance, read_instance


def load_instances(names: Sequence[str], *, seed: int = 0, load: RealNumbers = 0.8) -> list[Instance]:
    """Load instances by name: included ones, files and generated ones.

    Args:
        names: such as `two-path`, `mine.json` or `barabasi12*20`.
        seed: random seed of generated networks; copies differ from each other.
        load: load of generated networks, or the range from which each of them samples its own.
    """
    found: list[Instance] = []
    for name in names:
        drawn = parse_drawn(name)
        if drawn is None:
            found.append(read_instance(Path(name) if name.endswith(".json") else SHIPPED / f"{name}.json"))
            continue
        nodes, copies = drawn
        for _ in range(copies):
            number = seed * 1_000_003 + len(found)
            share = random.Random(f"load {number}").uniform(lower_bound(load), upper_bound(load))
            found.append(barabasi_network(nodes, seed=number, load=share))
    return found


def instances_of(config: MultihopSettings) -> list[Instance]:
    """Load the instances that the config names."""
    return load_instances(config.networks, seed=config.network_seed, load=config.network_load)


def sample_capacity(networks: Networks, network: Tensor, generator: torch.Generator) -> Tensor:
    """Sample the capacity of each link in one slot, `[B, M]`; network `[B]` int64."""
    rate, poisson = networks.rate, networks.poisson_links
    return _sample(rate, networks.capacity_cdf, poisson=poisson, network=network, generator=generator)


def sample_arrivals(networks: Networks, network: Tensor, generator: torch.Generator) -> Tensor:
    """Sample the arrivals of one slot, `[B, N, K]`; network `[B]` int64."""
    rate, poisson = networks.source_rate, networks.poisson_arrivals
    packets = _sample(rate, networks.arrival_cdf, poisson=poisson, network=network, generator=generator)
    pairs = packets.new_zeros(len(network), networks.num_nodes * networks.num_classes)
    entered = pairs.scatter_add(-1, Networks.of(networks.source, network), packets)
    return entered.unflatten(-1, (networks.num_nodes, networks.num_classes))


def _sample(
    rate: Tensor, cdf: Tensor | None, *, poisson: Tensor, network: Tensor, generator: torch.Generator
) -> Tensor:
    """Sample packets of one slot: Poisson for networks with a Poisson law, otherwise the rate itself.

    Args:
        rate: `[G, X]`.
        cdf: `[G * X * T]`, concatenated cumulative probabilities; None if nothing is Poisson.
        poisson: `[G]` bool.
        network: `[B]` int64.
        generator: source of randomness.

    Returns:
        `[B, X]`.
    """
    mean = Networks.of(rate, network)
    if cdf is None:
        return mean.clone()
    draw = torch.rand(mean.shape, generator=generator, device=mean.device)
    row = network.unsqueeze(-1) * rate.shape[-1] + torch.arange(rate.shape[-1], device=rate.device)
    drawn = invert_row(draw, row, flat_table=cdf, terms=len(cdf) // rate.numel())
    return torch.where(Networks.of(poisson, network).unsqueeze(-1), drawn, mean)


def empty_worlds(network: Tensor, networks: Networks, capacity: Tensor) -> dict[str, Tensor]:
    """Build worlds without packets, one for each entry of `network` `[B]`; capacity `[B, M]`.

    The state keeps what replays need of the network: `ends` `[B, M, 2]` of the links and `goals` `[B, K]` of
    the classes, -1 if absent.
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
