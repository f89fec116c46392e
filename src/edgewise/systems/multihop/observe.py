"""Observations of the multihop environment: a graph over pairs of node and class, and the metrics.

Pair (i, k) is node slot `i * K + k`. There are three kinds of edge slots, in this order:

1. `m * K + k`: link m may carry class k, from its start to its end; actions choose among these;
2. the same edges reversed, which pass messages from downstream queues;
3. all ordered pairs of classes at one node, which compete for its links.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor
from torchrl.data import TensorSpec, Unbounded

from edgewise.envs.symlog import symlog
from edgewise.graphs.edges import Device, Edges, Lead
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.systems.multihop.dynamics import at_nodes
from edgewise.systems.multihop.networks.batch import Networks

NODE_FEATURES = 4
"""Queue, arrival rate, whether the pair is a destination, hops to the destination."""


@dataclass(frozen=True)
class LinkEdges(Topology):
    """Edges looked up by network, with the current capacity of their link as an additional feature.

    Args:
        bank: edges of each network.
        num_links: M.
        num_classes: K.
    """

    num_links: int
    num_classes: int

    def __call__(self, graph: TensorDict) -> Edges:
        """Look up the edges and append the capacities to their features."""
        edges = super().__call__(graph)
        each = symlog(graph["capacity"]).repeat_interleave(self.num_classes, -1)
        others = edges.mask.shape[-1] - 2 * each.shape[-1]
        capacity = torch.cat((each, each, each.new_zeros(*each.shape[:-1], others)), -1)
        attr = (
            capacity.unsqueeze(-1)
            if edges.attr is None
            else torch.cat((edges.attr, capacity.unsqueeze(-1)), -1)
        )
        return Edges(edges.index, edges.mask, attr)

    def width(self, position_dim: int) -> int:
        """Return the number of edge features: those of the bank, and the capacity."""
        return super().width(position_dim) + 1

    def entries(self, lead: Lead, num_nodes: int, device: Device) -> dict[str, TensorSpec]:
        """Return the specs of the topology id and of the capacities."""
        capacity = Unbounded((*lead, self.num_links), device=device)
        return {**super().entries(lead, num_nodes, device), "capacity": capacity}


def graph_spec(networks: Networks) -> GraphSpec:
    """Describe the observed graphs."""
    classes = networks.num_classes
    edges = LinkEdges(_bank(networks), networks.num_links, classes)
    return GraphSpec(networks.num_nodes * classes, NODE_FEATURES, edges=edges)


def _bank(networks: Networks) -> TopologyBank:
    """Build the three kinds of edges of every network."""
    graphs, classes = len(networks), networks.num_classes
    kind = torch.arange(classes)
    start = (networks.start.unsqueeze(-1) * classes + kind).flatten(1)
    end = (networks.end.unsqueeze(-1) * classes + kind).flatten(1)
    onward = torch.stack((start, end), 1)
    rivals = [(one, other) for one in range(classes) for other in range(classes) if one != other]
    one, other = torch.tensor(rivals, dtype=torch.int64).reshape(-1, 2).T
    node = torch.arange(networks.num_nodes).unsqueeze(-1) * classes
    between = torch.stack(((node + one).flatten(), (node + other).flatten())).expand(graphs, -1, -1)
    exists = present(networks)
    both_exist = exists[:, between[0, 0]] & exists[:, between[0, 1]]
    usable = networks.usable.flatten(1)
    return TopologyBank(
        torch.cat((onward, onward.flip(1), between), -1),
        torch.cat((usable, usable, both_exist), -1),
        _bank_features(networks, between.shape[-1]),
    )


def _bank_features(networks: Networks, num_between: int) -> Tensor:
    """Build the constant edge features, `[G, E, D]`."""
    classes = networks.num_classes
    gain = at_nodes(networks.delay, networks.start) - at_nodes(networks.delay, networks.end)
    gain = torch.where(networks.usable, gain, 0.0).float().flatten(1)
    rate = symlog(networks.rate).repeat_interleave(classes, -1)
    kinds = torch.eye(3).expand(len(networks), 3, 3)
    rows = [
        _features(kinds[:, 0], rate, gain),
        _features(kinds[:, 1], rate, -gain),
        _features(kinds[:, 2], *[rate.new_zeros(len(networks), num_between)] * 2),
    ]
    return torch.cat(rows, 1)


def _features(kind: Tensor, *numbers: Tensor) -> Tensor:
    """Concatenate one kind `[G, 3]` and numbers `[G, E]` to `[G, E, 3 + len(numbers)]`."""
    plain = torch.stack(numbers, -1)
    return torch.cat((kind.unsqueeze(1).expand(-1, plain.shape[1], -1), plain), -1)


def present(networks: Networks) -> Tensor:
    """Return the pairs that exist and can reach their destination, `[G, N * K]` bool."""
    exists = networks.node_mask.unsqueeze(-1) & networks.class_mask.unsqueeze(-2) & networks.hops.isfinite()
    return exists.flatten(1)


def constant_features(networks: Networks) -> Tensor:
    """Build the constant node features: arrival rate, whether a destination, hops; `[G, N * K, 3]`."""
    node = torch.arange(networks.num_nodes, device=networks.destination.device).view(-1, 1)
    at_home = (node == networks.destination.unsqueeze(-2)).float()
    hops = torch.where(networks.hops.isfinite(), networks.hops, 0.0)
    return torch.stack((symlog(networks.arrival_rate), at_home, symlog(hops)), -1).flatten(1, 2)


def graph(state: TensorDict, *, exists: Tensor, constant: Tensor) -> dict[str, Tensor]:
    """Build the graphs of a batch of worlds.

    Args:
        state: state of the environment, batch `[B]`.
        exists: `[B, N * K]` bool.
        constant: `[B, N * K, 3]`, the constant features.
    """
    queues = symlog(state["queues"]).flatten(1).unsqueeze(-1)
    return {
        "x": torch.cat((queues, constant), -1),
        "node_mask": exists,
        "topology": state["network"],
        "capacity": state["capacity"],
    }


def metrics(state: TensorDict) -> dict[str, Tensor]:
    """Return the metrics so far, each `[B]`: mean backlog, packets delivered per arrival, overflow."""
    return {
        "backlog": (state["backlog_sum"] / state["step"].clamp_min(1)).float(),
        "throughput": (state["delivered"] / state["arrived"].clamp_min(1.0)).float(),
        "overflow": state["overflow"].float(),
    }
