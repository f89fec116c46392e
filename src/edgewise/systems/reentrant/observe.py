"""Observations: a graph over queues, and over servers where these act; and the metrics."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn.functional import one_hot

from edgewise.graphs.topology import TopologyBank
from edgewise.systems.reentrant.network import Network
from edgewise.systems.reentrant.tables import Tables

KINDS = 4
"""Kinds of edges: to the next queue, back, between queues of a server, between a server and a queue."""


def queue_features(tables: Tables) -> Tensor:
    """Build the constant features of queues, `[G, Q, F]`.

    Log of service time by its mean, load, whether jobs arrive from outside, queues and service time that a
    job still needs by the longest of the network, cost, and whether jobs leave after it.
    """
    exists = tables.queue_mask
    time = (1 / tables.service_rate.clamp_min(1e-9)) / tables.unit.unsqueeze(-1)
    most = tables.hops.amax(1, keepdim=True), tables.work.amax(1, keepdim=True)
    columns = [
        time.log(),
        tables.load,
        (tables.arrival_rate > 0).float(),
        tables.hops / most[0],
        tables.work / most[1],
        tables.cost,
        (tables.next_queue == tables.num_queues).float(),
    ]
    return torch.stack(columns, -1).masked_fill(~exists.unsqueeze(-1), 0.0)


def queue_edges(network: Network) -> list[list[tuple[int, int]]]:
    """Return the edges between queues of a network by kind: to the next queue, back, and at one server."""
    queues = range(network.num_queues)
    onward = [(queue, after) for queue, after in enumerate(network.next_queue) if after is not None]
    server = network.server
    rivals = [
        (one, other) for one in queues for other in queues if one != other and server[one] == server[other]
    ]
    return [onward, [(after, queue) for queue, after in onward], rivals]


def queue_bank(networks: Sequence[Network]) -> TopologyBank:
    """Build the topologies of edges between queues."""
    return _bank([queue_edges(network) for network in networks])


def server_bank(networks: Sequence[Network], tables: Tables) -> TopologyBank:
    """Build the topologies of `ReentrantEnv`; they begin with a slot for every server and its queues.

    Slots of servers with fewer queues are absent.
    """
    queues, most = tables.num_queues, tables.most_queues
    between = _bank([queue_edges(network) for network in networks])
    down: list[list[list[int]]] = []
    exists: list[list[bool]] = []
    for network in networks:
        own = [
            [q for q in range(network.num_queues) if network.server[q] == s]
            for s in range(tables.num_servers)
        ]
        slots = [(s, each[k] if k < len(each) else None) for s, each in enumerate(own) for k in range(most)]
        down.append([[queues + s for s, _ in slots], [q or 0 for _, q in slots]])
        exists.append([q is not None for _, q in slots])
    to, there = torch.tensor(down), torch.tensor(exists)
    kind = torch.zeros(*there.shape, KINDS)
    kind[..., -1] = 1.0
    assert between.attr is not None
    return TopologyBank(
        torch.cat((to, to.flip(1), between.index), -1),
        torch.cat((there, there, between.mask), -1),
        torch.cat((kind, kind, between.attr), 1),
    )


def _bank(edges: Sequence[list[list[tuple[int, int]]]]) -> TopologyBank:
    """Build topologies from edges by kind, with kinds as one-hot features."""
    numbers = [[kind for kind, group in enumerate(groups) for _ in group] for groups in edges]
    kinds = [one_hot(torch.tensor(each, dtype=torch.int64), KINDS).float() for each in numbers]
    return TopologyBank.from_edge_lists(
        [[pair for group in groups for pair in group] for groups in edges], kinds
    )


def metrics(state: TensorDict) -> dict[str, Tensor]:
    """Return the mean cost of waiting jobs over the time so far, `[B]`."""
    return {"jobs": (state["cost_sum"] / state["time"].clamp_min(1e-9)).float()}
