"""Simulation of a routing rule on one network: mean backlog, standard error and throughput."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.systems.multihop import dynamics, scenario
from edgewise.systems.multihop.networks.batch import Networks, networks_of
from edgewise.systems.multihop.networks.instance import Instance, read_instance
from edgewise.systems.multihop.routers import ROUTERS, Ties

Requests = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class BaselineRun:
    """Result of simulating a routing rule on a network.

    Attributes:
        policy: name of the rule.
        network: name of the instance.
        slots: slots simulated in each world, from empty queues.
        seeds: number of worlds.
        backlog: packets waiting after delivery, mean over slots and worlds.
        standard_error: standard error of the backlog, over worlds.
        throughput: packets delivered per packet arrived.
        backlogs: mean backlog of each world.
        ties: tie rules.
    """

    policy: str
    network: str
    slots: int
    seeds: int
    backlog: float
    standard_error: float
    throughput: float
    backlogs: tuple[float, ...]
    ties: Ties


def baseline_run(
    policy: str,
    instance: Instance | Path | str,
    *,
    slots: int = 1000,
    seeds: int = 8,
    seed: int = 0,
    ties: Ties | None = None,
) -> BaselineRun:
    """Simulate one of the routing rules.

    Args:
        policy: `backpressure`, `spbp`, `bpi` or `spts`.
        instance: the network, or its file.
        slots: number of slots.
        seeds: number of independent worlds, simulated in one batch.
        seed: random seed.
        ties: tie rules for equal pressures.
    """
    if policy not in ROUTERS:
        raise ConfigError(f"no routing rule is called {policy!r}", hint=f"there are {', '.join(ROUTERS)}")
    if slots < 1 or seeds < 1:
        raise ConfigError(f"a run takes at least one slot and one seed, got {slots} and {seeds}")
    if not isinstance(instance, Instance):
        instance = read_instance(instance)
    networks = networks_of([instance])
    router = ROUTERS[policy](networks, ties=ties, seed=seed + 1)
    world = simulate_slots(
        router.requests,
        networks,
        network=torch.zeros(seeds, dtype=torch.int64),
        slots=slots,
        generator=torch.Generator().manual_seed(seed),
    )
    means = world.backlog_sum / slots
    spread = means.std().item() / math.sqrt(seeds) if seeds > 1 else math.nan
    return BaselineRun(
        policy=policy,
        network=instance.name,
        slots=slots,
        seeds=seeds,
        backlog=means.mean().item(),
        standard_error=spread,
        throughput=(world.delivered.sum() / world.arrived.sum().clamp_min(1.0)).item(),
        backlogs=tuple(means.tolist()),
        ties=router.ties,
    )


@dataclass(frozen=True)
class Totals:
    """Sums over the slots of a simulation, each `[B]` float64, and the queues at its end `[B, N, K]`."""

    backlog_sum: Tensor
    arrived: Tensor
    delivered: Tensor
    queues: Tensor


def simulate_slots(
    requests: Requests, networks: Networks, *, network: Tensor, slots: int, generator: torch.Generator
) -> Totals:
    """Simulate a batch of worlds under a rule from empty queues, without an environment.

    Args:
        requests: maps queues `[B, N, K]`, capacities `[B, M]` and networks `[B]` to requests `[B, M, K]`.
        networks: all networks.
        network: `[B]` int64, index of each world's network.
        slots: number of slots.
        generator: source of randomness of arrivals, capacities and the order of links.
    """
    queues = torch.zeros(len(network), networks.num_nodes, networks.num_classes)
    backlog_sum, arrived, delivered = torch.zeros(3, len(network), dtype=torch.float64).unbind()
    wiring = networks.wiring(network)
    for _ in range(slots):
        capacity = scenario.sample_capacity(networks, network, generator)
        order = dynamics.random_order(wiring.start, generator)
        request = requests(queues, capacity, network)
        queues, _, left = dynamics.transmit(queues, request, capacity=capacity, wiring=wiring, order=order)
        backlog_sum = backlog_sum + dynamics.backlog(queues)
        delivered = delivered + left.sum(-1)
        arrivals = scenario.sample_arrivals(networks, network, generator)
        queues, arrived = queues + arrivals, arrived + dynamics.backlog(arrivals)
    return Totals(backlog_sum, arrived, delivered, queues)
