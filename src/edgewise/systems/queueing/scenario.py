"""Initial states: arrival and service rates, first queues and node priorities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.arrivals import Law
from edgewise.envs.ranges import RealNumbers, lower_bound, upper_bound
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.graphs import ConflictGraphs
from edgewise.systems.queueing.sets.heaviest import uniform_capacity

SERVICE_DEVIATION = 1.0
"""Standard deviation of `normal` service, before rounding."""


@dataclass(frozen=True)
class Laws:
    """Distributions of arrivals and service."""

    arrival: Law
    service: Law


def laws_of(config: QueueingConfig) -> Laws:
    """Build the distributions that the config names."""
    return Laws(
        arrival=Law(config.arrival_law, highest_rate=config.highest_arrival_rate),
        service=Law(
            config.service_law, deviation=SERVICE_DEVIATION, highest_rate=config.highest_service_rate
        ),
    )


def capacities(config: QueueingConfig, graphs: ConflictGraphs) -> Tensor:
    """Compute the largest uniform arrival rate that each graph can serve, `[G]`; ones without `load`."""
    if config.load is None:
        return torch.ones(len(graphs))
    found = [uniform_capacity(graph) for graph in graphs.graphs]
    for name, capacity in zip(graphs.names, found, strict=True):
        rate = capacity * upper_bound(config.load)
        if config.arrival_law == "bernoulli" and rate > 1.0:
            raise ConfigError(
                f"load {config.load} of {name} is {rate:.3g} Bernoulli arrivals per slot",
                hint="lower load or use poisson arrivals",
            )
    return torch.tensor(found)


def sample_worlds(
    graph: Tensor,
    *,
    config: QueueingConfig,
    node_mask: Tensor,
    neighbours: Tensor,
    capacity: Tensor,
    laws: Laws,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Sample one world for each entry of `graph`.

    Args:
        graph: `[B]` int64, index of each world's conflict graph.
        config: settings of the environment.
        node_mask: `[B, N]` bool, the nodes of those graphs.
        neighbours: `[B, N, W]` int64, their neighbours as bit words.
        capacity: `[B]`, the uniform rate that corresponds to a load of 1.
        laws: distributions of arrivals and service.
        generator: source of randomness.

    Returns:
        `conflict_graph`, `backlog_sum` and `overflow` `[B]`; `node_mask`, `queues`, `service`,
        `arrival_rate`, `service_rate`, `priority`, `scheduled` and `arrived` `[B, N]`; `neighbours` `[B, N,
        W]`.
    """
    draw = _Sampler(node_mask, generator)
    if config.load is not None:
        arrival_rate = capacity.unsqueeze(-1) * draw.rates(config.load, None, shared=True)
    else:
        arrival_rate = draw.rates(config.arrival_rate, config.arrival_rates)
    queues = draw.whole(config.initial_queue)
    service_rate = draw.rates(config.service_rate, config.service_rates)
    return {
        "conflict_graph": graph,
        "node_mask": node_mask,
        "neighbours": neighbours,
        "queues": queues,
        "service": laws.service(service_rate, generator) * node_mask,
        "arrival_rate": arrival_rate * node_mask,
        "service_rate": service_rate * node_mask,
        "priority": draw.priority(config.node_priority),
        "scheduled": torch.zeros_like(node_mask),
        "arrived": queues.clone(),
        "backlog_sum": torch.zeros_like(graph, dtype=torch.float64),
        "overflow": torch.zeros_like(graph, dtype=torch.bool),
    }


class _Sampler:
    """Samples quantities of nodes, `[B, N]` each; absent nodes are zero."""

    def __init__(self, node_mask: Tensor, generator: torch.Generator) -> None:
        self.node_mask = node_mask
        self.generator = generator

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.node_mask.device)

    def rates(self, rate: RealNumbers, each: tuple[float, ...] | None, *, shared: bool = False) -> Tensor:
        """Return one rate for all nodes, rates from a range, or the rate given for each node."""
        worlds, nodes = self.node_mask.shape
        if each is not None:
            return torch.tensor(each, device=self.node_mask.device).expand(worlds, nodes)
        if not isinstance(rate, tuple):
            return torch.full((worlds, nodes), rate, device=self.node_mask.device)
        draw = self._uniform(worlds, 1).expand(worlds, nodes) if shared else self._uniform(worlds, nodes)
        return lower_bound(rate) + (upper_bound(rate) - lower_bound(rate)) * draw

    def whole(self, most: int) -> Tensor:
        """Sample integers from 0 to `most` uniformly."""
        if most == 0:
            return torch.zeros_like(self.node_mask, dtype=torch.float32)
        draw = self._uniform(*self.node_mask.shape)
        return (draw * (most + 1)).floor().clamp_max(float(most)) * self.node_mask

    def priority(self, kind: str) -> Tensor:
        """Return evenly spaced numbers in [-1, 1], in order or permuted at random; zeros for `none`."""
        count = self.node_mask.sum(-1, keepdim=True)
        rank = self.node_mask.cumsum(-1) - 1
        if kind == "none":
            return torch.zeros_like(self.node_mask, dtype=torch.float32)
        if kind == "random":
            draw = self._uniform(*self.node_mask.shape).masked_fill(~self.node_mask, 2.0)
            rank = draw.argsort(-1).argsort(-1)
        return (2.0 * rank / (count - 1).clamp_min(1) - 1.0) * self.node_mask
