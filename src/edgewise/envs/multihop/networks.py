"""Many instances as one set of padded tensors, their links sorted and their distances worked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from edgewise.config.errors import DataError
from edgewise.envs.multihop.dynamics import Wiring
from edgewise.envs.multihop.instance import Instance


@dataclass(frozen=True)
class Networks:
    """G networks of at most N nodes, M links and K classes.

    Attributes:
        start, end: `[G, M]` int64; links are sorted by start, absent ones come last and start at node N -
            1.
        first: `[G, M]` int64, the slot of the first link with the same start.
        number: `[G, M]` int64, the place of each link in its file.
        rate, power: `[G, M]`.
        link_mask: `[G, M]` bool.
        node_mask: `[G, N]` bool.
        class_mask: `[G, K]` bool.
        destination: `[G, K]` int64.
        arrival_rate: `[G, N, K]`.
        hops: `[G, N, K]`, links on the shortest way to the destination, infinite where there is none.
        delay: `[G, N, K]`, the same with every link as long as one over its rate.
        poisson_links, poisson_arrivals: `[G]` bool.
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
    poisson_links: Tensor
    poisson_arrivals: Tensor

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

    @property
    def usable(self) -> Tensor:
        """Whether a link exists and its end can bring a class to its destination, `[G, M, K]` bool."""
        at_end = self.hops.gather(1, self.end.unsqueeze(-1).expand(-1, -1, self.num_classes))
        return at_end.isfinite() & self.link_mask.unsqueeze(-1) & self.class_mask.unsqueeze(1)

    def to(self, device: torch.device | str) -> Networks:
        """The same networks on another device."""
        return Networks(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})

    def wiring(self, network: Tensor) -> Wiring:
        """The links of each world's network; `[*B]` int64."""
        return Wiring(
            start=self.start[network],
            end=self.end[network],
            first=self.first[network],
            destination=self.destination[network],
            usable=self.usable[network],
        )


def networks_of(instances: Sequence[Instance]) -> Networks:
    """Pad instances to common sizes."""
    if not instances:
        raise DataError("no network instance was given", hint="name at least one")
    nodes = max(instance.num_nodes for instance in instances)
    links = max(len(instance.links) for instance in instances)
    classes = max(len(instance.classes) for instance in instances)
    rows = [_row(instance, nodes, links, classes) for instance in instances]
    return Networks(**{name: torch.stack([row[name] for row in rows]) for name in rows[0]})


def _row(instance: Instance, nodes: int, links: int, classes: int) -> dict[str, Tensor]:
    """One instance, padded."""
    by_start = sorted(range(len(instance.links)), key=lambda number: instance.links[number].start)
    ordered = [instance.links[number] for number in by_start]
    absent = links - len(ordered)
    start = torch.tensor([link.start for link in ordered] + [nodes - 1] * absent)
    end = torch.tensor([link.end for link in ordered] + [nodes - 1] * absent)
    arrival_rate = torch.zeros(nodes, classes)
    for number, traffic in enumerate(instance.classes):
        for source, mean in traffic.sources.items():
            arrival_rate[source, number] = mean
    destination = torch.zeros(classes, dtype=torch.int64)
    destination[: len(instance.classes)] = torch.tensor([traffic.destination for traffic in instance.classes])
    rate = torch.tensor([link.rate for link in ordered] + [0.0] * absent)
    power = torch.tensor([link.power or 0.0 for link in ordered] + [0.0] * absent)
    link_mask = torch.arange(links) < len(ordered)
    hops = distances(start[link_mask], end[link_mask], torch.ones(len(ordered)), nodes)[:, destination]
    delay = distances(start[link_mask], end[link_mask], 1.0 / rate[link_mask], nodes)[:, destination]
    return {
        "start": start,
        "end": end,
        "first": torch.searchsorted(start, start),
        "number": torch.tensor(by_start + list(range(len(ordered), links))),
        "rate": rate,
        "power": power,
        "link_mask": link_mask,
        "node_mask": torch.arange(nodes) < instance.num_nodes,
        "class_mask": torch.arange(classes) < len(instance.classes),
        "destination": destination,
        "arrival_rate": arrival_rate,
        "hops": hops,
        "delay": delay,
        "poisson_links": torch.tensor(instance.link_law == "poisson"),
        "poisson_arrivals": torch.tensor(instance.arrival_law == "poisson"),
    }


def distances(start: Tensor, end: Tensor, length: Tensor, num_nodes: int) -> Tensor:
    """Shortest ways between all nodes over directed links, `[M]` each to `[N, N]` (Floyd and Warshall)."""
    table = torch.full((num_nodes, num_nodes), torch.inf, dtype=torch.float64)
    table.index_put_((start, end), length.double())
    table.fill_diagonal_(0.0)
    for middle in range(num_nodes):
        table = torch.minimum(table, table[:, middle, None] + table[None, middle])
    return table.float()
