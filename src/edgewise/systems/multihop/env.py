"""The multihop environment: routing in multi-class multi-hop networks."""

from __future__ import annotations

from typing import TypeVar

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import ChooseEdgePerGroup
from edgewise.graphs.keys import PRIOR
from edgewise.systems.multihop import dynamics, observe, scenario
from edgewise.systems.multihop.config import MultihopConfig, MultihopSettings
from edgewise.systems.multihop.networks.batch import Networks, networks_of
from edgewise.systems.multihop.routers import PRESSURE_ROUTERS

SettingsT = TypeVar("SettingsT", bound=MultihopSettings)


class NetworkEnv(GraphEnv[SettingsT]):
    """Base of both ways to route: what happens in a slot, given what links request."""

    networks: Networks

    def spawn(self, count: int) -> Entries:
        """Sample new worlds, each on one of the networks, without packets."""
        network = torch.randint(len(self.networks), (count,), generator=self.generator, device=self.device)
        capacity = scenario.sample_capacity(self.networks, network, self.generator)
        return scenario.empty_worlds(network, self.networks, capacity)

    def advance_by(
        self, state: TensorDict, request: Tensor, *, max_backlog: float | None = None
    ) -> Transition:
        """Advance by requests of any size, `[B, M, K]`; a link may split its capacity between classes.

        Worlds with a larger backlog than `max_backlog` are truncated; that slot costs as much in addition.
        """
        network = state["network"]
        wiring = self.networks.wiring(network)
        queues, carried, delivered = dynamics.transmit(
            state["queues"],
            request,
            capacity=state["capacity"],
            wiring=wiring,
            order=dynamics.random_order(wiring.start, self.generator),
        )
        backlog = dynamics.backlog(queues)
        overflow = backlog > (torch.inf if max_backlog is None else max_backlog)
        arrivals = scenario.sample_arrivals(self.networks, network, self.generator)
        after = {
            "queues": queues + arrivals,
            "capacity": scenario.sample_capacity(self.networks, network, self.generator),
            "carried": carried.sum(-1),
            "arrived": state["arrived"] + dynamics.backlog(arrivals),
            "delivered": state["delivered"] + delivered.sum(-1),
            "backlog_sum": state["backlog_sum"] + backlog,
            "overflow": overflow,
        }
        cost = backlog + (max_backlog or 0.0) * overflow
        return Transition(after, reward=-cost / self.config.reward_scale, truncated=overflow)

    def load(self, state: TensorDict) -> Tensor:
        """Return the number of waiting packets, `[B]`."""
        return dynamics.backlog(state["queues"])


class MultihopEnv(NetworkEnv[MultihopConfig]):
    """Choose the class that each link carries so that few packets wait. README.md is the card.

    Example:
        >>> env = MultihopEnv(MultihopConfig(networks=("two-path", "cross")), num_envs=8, seed=0)
        >>> env.rollout(3, break_when_any_done=False)["next", "reward"].shape
        torch.Size([8, 3, 1])
    """

    pairs: Tensor
    constant: Tensor

    def setup(self) -> None:
        """Load the networks; each world refers to one by its index."""
        self.instances = scenario.instances_of(self.config)
        self.networks = networks_of(self.instances)
        self.graph = observe.graph_spec(self.networks)
        self.actions = ChooseEdgePerGroup(self.networks.num_links, self.networks.num_classes)
        self.networks.to(self.device)
        rule = self.config.prior
        self.router = None if rule == "none" else PRESSURE_ROUTERS[rule](self.networks)
        self.register_buffer("pairs", observe.present(self.networks))
        self.register_buffer("constant", observe.constant_features(self.networks))

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Carry the chosen classes, deliver, admit arrivals and sample new capacities."""
        capacity = state["capacity"]
        request = dynamics.full_capacity_requests(action, capacity, self.networks.num_classes)
        return self.advance_by(state, request, max_backlog=self.config.max_backlog)

    def observe(self, state: TensorDict) -> Entries:
        """Return the graph over pairs of node and class, the metrics and, if the config asks, a prior."""
        network = state["network"]
        exists, constant = Networks.of(self.pairs, network), Networks.of(self.constant, network)
        seen = {
            "graph": observe.graph(state, exists=exists, constant=constant),
            "metrics": observe.metrics(state),
        }
        if self.router is None:
            return seen
        scores = self.router.scores(state["queues"], state["capacity"], network)
        return {**seen, PRIOR: torch.nn.functional.pad(scores, (1, 0))}

    def mask(self, state: TensorDict) -> Tensor:
        """Return what each link may carry, `[B, M, 1 + K]` bool; entry 0 is nothing."""
        allowed = dynamics.choices(state["queues"], self.networks.wiring(state["network"]))
        if self.config.idle_allowed:
            allowed[..., 0] = True
        return allowed
