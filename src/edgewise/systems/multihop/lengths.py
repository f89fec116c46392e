"""Routing by lengths: a policy gives links lengths, and BackPressure sends packets along short paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn.functional import one_hot

from edgewise.envs.entries import Entries
from edgewise.envs.symlog import symlog
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import Amount, PerNode
from edgewise.graphs.keys import PRIOR
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.systems.multihop import observe, routing, scenario
from edgewise.systems.multihop.config import LengthsConfig
from edgewise.systems.multihop.env import NetworkEnv
from edgewise.systems.multihop.networks import flow
from edgewise.systems.multihop.networks.batch import Networks, networks_of
from edgewise.systems.multihop.networks.instance import Instance, Link
from edgewise.systems.multihop.routers import BackPressure, FlowBackPressure, LengthBackPressure

UNIT = 16.0
"""Packets that a length of action 0 counts as."""
RANGE = 7.0
"""Largest absolute action: lengths are between 0.015 and 17,500 packets."""
KINDS = 3
"""Kinds of edges between links: to links that begin where one ends, back, and between those of one start."""


class MultihopLengthsEnv(NetworkEnv[LengthsConfig]):
    """Give every link a length, by which BackPressure routes until the next decision. README.md is the card.

    Example:
        >>> env = MultihopLengthsEnv(LengthsConfig(networks=("diamond",), max_steps=50), num_envs=4, seed=0)
        >>> env.rollout(1)["next", "done"].all()
        tensor(True)
    """

    features: Tensor
    rule_lengths: Tensor

    def setup(self) -> None:
        """Load the networks and build the graph over their links."""
        self.instances = scenario.instances_of(self.config)
        self.networks = networks_of(self.instances)
        self.actions = PerNode(Amount(-RANGE, RANGE))
        flow_features = self.config.flow_features
        features = link_features(self.networks, self.instances, flow_features=flow_features)
        bank = links_that_meet(self.instances)
        self.graph = GraphSpec(self.networks.num_links, features.shape[-1], edges=Topology(bank))
        self.networks.to(self.device)
        self.rule = BackPressure(self.networks)
        self.register_buffer("features", features)
        self.register_buffer(
            "rule_lengths", lengths_of_rule(self.networks, self.instances, self.config.prior)
        )

    def decide(self, state: TensorDict, action: Tensor) -> Tensor:
        """Return the bias of every class on every link, `[B, M, K]`: how much shorter its path becomes."""
        network = state["network"]
        wiring = self.networks.wiring(network)
        length = UNIT * action.double().exp()
        length = length.masked_fill(~Networks.of(self.networks.link_mask, network), torch.inf)
        near = routing.shortest_distances(length, wiring, num_nodes=self.networks.num_nodes)
        return routing.length_bias(near, wiring, weight=1.0)

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Route one slot by BackPressure with a bias `[B, M, K]`."""
        request = self.rule.requests_with(action, state["queues"], state["capacity"], state["network"])
        return self.advance_by(state, request)

    def observe(self, state: TensorDict) -> Entries:
        """Return the graph over links, the metrics and, if the config asks, a prior."""
        network = state["network"]
        graph = {
            "x": Networks.of(self.features, network),
            "node_mask": Networks.of(self.networks.link_mask, network),
            "topology": network,
        }
        seen = {"graph": graph, "metrics": observe.metrics(state)}
        if self.config.prior == "none":
            return seen
        return {**seen, PRIOR: Networks.of(self.rule_lengths, network)}


def links_that_meet(instances: Sequence[Instance]) -> TopologyBank:
    """Build the edges between links of every network, with their kind as one-hot features."""
    edges, kinds = [], []
    for instance in instances:
        links = list(enumerate(by_start(instance)))
        onward = [(m, n) for m, one in links for n, other in links if one.end == other.start]
        rivals = [(m, n) for m, one in links for n, other in links if one.start == other.start and m != n]
        groups = (onward, [(n, m) for m, n in onward], rivals)
        edges.append([pair for group in groups for pair in group])
        kind = [number for number, group in enumerate(groups) for _ in group]
        kinds.append(one_hot(torch.tensor(kind, dtype=torch.int64), KINDS).float())
    return TopologyBank.from_edge_lists(edges, kinds)


def by_start(instance: Instance) -> list[Link]:
    """Return the links in the order of their slots."""
    return sorted(instance.links, key=lambda link: link.start)


def link_features(networks: Networks, instances: Sequence[Instance], *, flow_features: bool) -> Tensor:
    """Build the features of links, `[G, M, F]`: rates, traffic at both ends, and the flow of least delay.

    Without flow features: log rate, traffic that enters at both ends, traffic that leaves at both ends, and
    the share of a link in the rates of all that begin where it does.
    """
    entering = networks.arrival_rate.sum(-1)
    leaving = torch.zeros_like(entering).scatter_add(-1, networks.destination, networks.arrival_rate.sum(1))
    rate = networks.rate.clamp_min(1e-6)
    columns = [rate.log()]
    for traffic in (entering, leaving):
        columns += [symlog(traffic.gather(-1, ends)) for ends in (networks.start, networks.end)]
    out = torch.zeros_like(entering).scatter_add(-1, networks.start, networks.rate)
    columns.append(networks.rate / out.gather(-1, networks.start).clamp_min(1e-6))
    if flow_features:
        used, delay = flow_columns(instances, networks.num_links)
        columns += [used, (used + 0.01).log() / 4, delay.log()]
    found = torch.stack(columns, -1)
    return found.masked_fill(~networks.link_mask.unsqueeze(-1), 0.0)


def flow_columns(instances: Sequence[Instance], slots: int) -> tuple[Tensor, Tensor]:
    """Return utilisation and marginal delay of links in the flow of least delay, `[G, M]` each."""
    used, delay = [], []
    for instance in instances:
        links = by_start(instance)
        start, end = (np.array([getattr(link, name) for link in links]) for name in ("start", "end"))
        rate = np.array([link.rate for link in links])
        goals = np.array([traffic.destination for traffic in instance.classes])
        arrivals = np.zeros((instance.num_nodes, len(goals)))
        for kind, traffic in enumerate(instance.classes):
            for source, amount in traffic.sources.items():
                arrivals[source, kind] = amount
        carried = flow.least_delay_flow(start, end, rate, goals, arrivals)
        absent = slots - len(links)
        used.append([*(carried / rate).tolist(), *[0.0] * absent])
        delay.append([*flow.marginal_delay(carried, rate).tolist(), *[1.0] * absent])
    return torch.tensor(used), torch.tensor(delay)


def lengths_of_rule(networks: Networks, instances: Sequence[Instance], rule: str) -> Tensor:
    """Return the actions `[G, M]` with which a routing rule is executed; zeros for none."""
    if rule == "length-backpressure":
        lengths = LengthBackPressure.WEIGHT / networks.rate
    elif rule == "flow-backpressure":
        _, delay = flow_columns(instances, networks.num_links)
        lengths = FlowBackPressure.WEIGHT * delay.to(networks.rate.device)
    else:
        lengths = torch.full_like(networks.rate, UNIT)
    action = (lengths / UNIT).log().clamp(-RANGE, RANGE)
    return torch.where(networks.link_mask, action, 0.0)
