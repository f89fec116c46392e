"""Many networks as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from edgewise.systems.reentrant.dynamics import Chain
from edgewise.systems.reentrant.network import Network


class Tables(nn.Module):
    """G networks of at most Q queues and S servers with at most K queues each.

    A module, so it moves with its environment. Queue Q stands for outside: jobs that leave go there.

    Attributes:
        queue_mask: `[G, Q]` bool.
        service_rate, arrival_rate, cost: `[G, Q]`.
        next_queue: `[G, Q]` int64; Q where jobs leave.
        server: `[G, Q]` int64.
        queue_of: `[G, S, K]` int64, the queues of each server; Q where it has fewer.
        load: `[G, Q]`, share of its server's time that a queue needs.
        hops: `[G, Q]`, queues that a job still visits, this one included.
        work: `[G, Q]`, service time that a job still needs.
        unit: `[G]`, mean service time over all services.
        event_rate: `[G]`, arrivals and ends of services per unit of time, if servers keep up.
    """

    queue_mask: Tensor
    service_rate: Tensor
    arrival_rate: Tensor
    cost: Tensor
    next_queue: Tensor
    server: Tensor
    queue_of: Tensor
    load: Tensor
    hops: Tensor
    work: Tensor
    unit: Tensor
    event_rate: Tensor

    def __init__(self, networks: Sequence[Network]) -> None:
        super().__init__()
        queues = max(network.num_queues for network in networks)
        servers = max(network.num_servers for network in networks)
        most = max(network.server.count(each) for network in networks for each in network.server)
        rows = [_row(network, queues=queues, servers=servers, most=most) for network in networks]
        for name in rows[0]:
            self.register_buffer(name, torch.stack([row[name] for row in rows]))

    def __len__(self) -> int:
        return len(self.queue_mask)

    @property
    def num_queues(self) -> int:
        """Q."""
        return int(self.queue_mask.shape[1])

    @property
    def num_servers(self) -> int:
        """S."""
        return int(self.queue_of.shape[1])

    @property
    def most_queues(self) -> int:
        """K."""
        return int(self.queue_of.shape[2])

    def chain(self, network: Tensor) -> Chain:
        """Return the networks of worlds `[B]` int64."""
        return Chain(
            self.of(self.service_rate, network),
            self.of(self.arrival_rate, network),
            self.of(self.next_queue, network),
            self.of(self.queue_of, network),
        )

    def of(self, table: Tensor, network: Tensor) -> Tensor:
        """Select the row of each world's network, `[G, ...]` and `[B]` to `[B, ...]`."""
        return table.expand(len(network), *table.shape[1:]) if len(table) == 1 else table[network]


def _row(network: Network, *, queues: int, servers: int, most: int) -> dict[str, Tensor]:
    """Build the row of one network."""
    count = network.num_queues
    absent = queues - count
    flow = network.flow()
    routes = [network.route(queue) for queue in range(count)]
    own = [[queue for queue in range(count) if network.server[queue] == s] for s in range(servers)]

    def padded(values: Sequence[float], value: float = 0.0) -> Tensor:
        return torch.tensor([*values, *[value] * absent])

    time = [1 / rate for rate in network.service_rate]
    return {
        "queue_mask": torch.arange(queues) < count,
        "service_rate": padded(network.service_rate),
        "arrival_rate": padded(network.arrival_rate),
        "cost": padded(network.cost),
        "next_queue": torch.tensor(
            [queues if each is None else each for each in network.next_queue] + [queues] * absent
        ),
        "server": torch.tensor([*network.server, *[0] * absent]),
        "queue_of": torch.tensor([each + [queues] * (most - len(each)) for each in own]),
        "load": padded([flow[queue] * time[queue] for queue in range(count)]),
        "hops": padded([float(len(route)) for route in routes]),
        "work": padded([sum(time[queue] for queue in route) for route in routes]),
        "unit": torch.tensor(sum(f * t for f, t in zip(flow, time, strict=True)) / sum(flow)),
        "event_rate": torch.tensor(sum(flow) + sum(network.arrival_rate)),
    }
