"""Many instances as padded tensors, with sorted links and shortest distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from edgewise.config.errors import DataError
from edgewise.envs.arrivals import flatten_table, poisson_table, poisson_terms
from edgewise.systems.multihop.dynamics import Wiring
from edgewise.systems.multihop.networks.instance import Instance


class Networks(nn.Module):
    """G networks of at most N nodes, M links and K classes. A module, so it moves with its environment.

    Args:
        tables: values of the attributes below by name.

    Attributes:
        start, end: `[G, M]` int64; links are sorted by start, absent ones are last and start at node N - 1.
        first: `[G, M]` int64, index of the first link with the same start.
        number: `[G, M]` int64, position of each link in its file.
        rate, power: `[G, M]`.
        link_mask: `[G, M]` bool.
        node_mask: `[G, N]` bool.
        class_mask: `[G, K]` bool.
        destination: `[G, K]` int64.
        arrival_rate: `[G, N, K]`.
        hops: `[G, N, K]`, links on the shortest path to the destination, infinite if there is none.
        delay: `[G, N, K]` float64, length of the shortest path if a link's length is one over its rate.
        usable: `[G, M, K]` bool, whether a link exists and the destination can be reached from its end.
        source, source_rate: `[G, S]`, where packets enter (as `node * K + class`) and the rate per slot.
        poisson_links, poisson_arrivals: `[G]` bool.
        capacity_cdf, arrival_cdf: concatenated cumulative probabilities of the Poisson laws of all links and
            sources; None if no network has such a law.
    """

    start: Tensor
    end: Tensor
    first: Tensor
    number: Tensor
    rate: Tensor
    power: Tensor
    link_mask: Tensor
    node_mask: Tensor
    class_mask: Tensor
    destination: Tensor
    arrival_rate: Tensor
    hops: Tensor
    delay: Tensor
    usable: Tensor
    source: Tensor
    source_rate: Tensor
    poisson_links: Tensor
    poisson_arrivals: Tensor
    capacity_cdf: Tensor | None
    arrival_cdf: Tensor | None

    def __init__(self, tables: Mapping[str, Tensor | None]) -> None:
        super().__init__()
        for name, table in tables.items():
            self.register_buffer(name, table)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.node_mask.shape[-1]

    @property
    def num_links(self) -> int:
        """M."""
        return self.link_mask.shape[-1]

    @property
    def num_classes(self) -> int:
        """K."""
        return self.class_mask.shape[-1]

    def wiring(self, network: Tensor) -> Wiring:
        """Return the links of each world's network; `network` is `[B]` int64."""
        return Wiring(
            start=self.of(self.start, network),
            end=self.of(self.end, network),
            first=self.of(self.first, network),
            destination=self.of(self.destination, network),
            usable=self.of(self.usable, network),
        )

    @staticmethod
    def of(table: Tensor, network: Tensor) -> Tensor:
        """Select the row of each world's network from a table, `[G, ...]` and `[B]` to `[B, ...]`."""
        return table.expand(len(network), *table.shape[1:]) if len(table) == 1 else table[network]


def networks_of(instances: Sequence[Instance]) -> Networks:
    """Pad instances to common sizes.

    Example:
        >>> from edgewise.systems.multihop.networks.instance import Link, TrafficClass
        >>> line = Instance("line", 3, (Link(0, 1, 1.0), Link(1, 2, 1.0)), (TrafficClass(2, {0: 0.5}),))
        >>> networks_of([line]).hops.flatten()
        tensor([2., 1., 0.])
    """
    if not instances:
        raise DataError("no network instance was given", hint="give at least one")
    nodes = max(instance.num_nodes for instance in instances)
    classes = max(len(instance.classes) for instance in instances)
    links = max(len(instance.links) for instance in instances)
    sources = max(sum(len(traffic.sources) for traffic in instance.classes) for instance in instances)
    rows = [
        {
            **_links(instance, nodes=nodes, links=links),
            **_traffic(instance, nodes=nodes, classes=classes, sources=sources),
            **_distances(instance, nodes=nodes, classes=classes),
        }
        for instance in instances
    ]
    table = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    at_end = table["hops"].gather(1, table["end"].unsqueeze(-1).expand(-1, -1, classes))
    table["usable"] = at_end.isfinite() & table["link_mask"].unsqueeze(-1) & table["class_mask"].unsqueeze(1)
    return Networks(
        {
            **table,
            "capacity_cdf": _poisson_cdf(table["rate"], [_link_rates(instance) for instance in instances]),
            "arrival_cdf": _poisson_cdf(
                table["source_rate"], [_flow_rates(instance) for instance in instances]
            ),
        }
    )


def _link_rates(instance: Instance) -> list[float]:
    """Return the rates of Poisson links; empty if capacities are fixed."""
    return [link.rate for link in instance.links] if instance.link_law == "poisson" else []


def _flow_rates(instance: Instance) -> list[float]:
    """Return the rates of Poisson arrivals; empty if arrivals are fixed."""
    rates = [rate for traffic in instance.classes for rate in traffic.sources.values()]
    return rates if instance.arrival_law == "poisson" else []


def _poisson_cdf(rate: Tensor, poisson: list[list[float]]) -> Tensor | None:
    """Concatenate cumulative probabilities for rates `[G, X]`; None if no network has Poisson rates."""
    if not any(poisson):
        return None
    terms = poisson_terms(max(max(rates) for rates in poisson if rates))
    return flatten_table(poisson_table(rate.double().flatten(), terms=terms))


def _links(instance: Instance, *, nodes: int, links: int) -> dict[str, Tensor]:
    """Build the tables of one instance's links, sorted by start and padded."""
    count = len(instance.links)
    by_start = sorted(range(count), key=lambda number: instance.links[number].start)
    ordered = [instance.links[number] for number in by_start]
    absent = links - count
    start = torch.tensor([link.start for link in ordered] + [nodes - 1] * absent)
    return {
        "start": start,
        "end": torch.tensor([link.end for link in ordered] + [nodes - 1] * absent),
        "first": torch.searchsorted(start, start),
        "number": torch.tensor(by_start + list(range(count, links))),
        "rate": torch.tensor([link.rate for link in ordered] + [0.0] * absent),
        "power": torch.tensor([link.power or 0.0 for link in ordered] + [0.0] * absent),
        "link_mask": torch.arange(links) < count,
        "poisson_links": torch.tensor(instance.link_law == "poisson"),
    }


def _traffic(instance: Instance, *, nodes: int, classes: int, sources: int) -> dict[str, Tensor]:
    """Build the tables of one instance's nodes and classes, padded."""
    flows = [
        (source * classes + number, rate)
        for number, traffic in enumerate(instance.classes)
        for source, rate in traffic.sources.items()
    ]
    absent = sources - len(flows)
    source = torch.tensor([place for place, _ in flows] + [0] * absent)
    source_rate = torch.tensor([rate for _, rate in flows] + [0.0] * absent)
    destinations = [traffic.destination for traffic in instance.classes]
    return {
        "node_mask": torch.arange(nodes) < instance.num_nodes,
        "class_mask": torch.arange(classes) < len(destinations),
        "destination": torch.tensor(destinations + [0] * (classes - len(destinations))),
        "source": source,
        "source_rate": source_rate,
        "arrival_rate": torch.zeros(nodes * classes).scatter_add(0, source, source_rate).view(nodes, classes),
        "poisson_arrivals": torch.tensor(instance.arrival_law == "poisson"),
    }


def _distances(instance: Instance, *, nodes: int, classes: int) -> dict[str, Tensor]:
    """Compute the distances of each node to the destination of each class, padded."""
    ends = [(link.start, link.end) for link in instance.links]
    goals = [traffic.destination for traffic in instance.classes]
    goals += [0] * (classes - len(goals))
    hops = distances(ends, [1.0] * len(ends), num_nodes=nodes)
    delay = distances(ends, [1.0 / link.rate for link in instance.links], num_nodes=nodes)
    return {
        "hops": torch.tensor(hops[:, goals].tolist()),
        "delay": torch.tensor(delay[:, goals].tolist(), dtype=torch.float64),
    }


def distances(ends: Sequence[tuple[int, int]], length: Sequence[float], *, num_nodes: int) -> np.ndarray:
    """Compute shortest distances between all nodes over directed links, `[N, N]` (Floyd and Warshall)."""
    table = np.full((num_nodes, num_nodes), np.inf)
    for (start, end), distance in zip(ends, length, strict=True):
        table[start, end] = distance
    np.fill_diagonal(table, 0.0)
    for middle in range(num_nodes):
        table = np.minimum(table, table[:, middle, None] + table[None, middle])
    return table
