"""Multi-class multi-hop routing as an environment: the rules, the networks and the view, put together."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.envs.packing import Entries
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import ChooseEdgePerGroup
from edgewise.systems.multihop import dynamics, observe, scenario
from edgewise.systems.multihop.config import MultihopConfig
from edgewise.systems.multihop.networks import Networks, networks_of


class MultihopEnv(GraphEnv[MultihopConfig]):
    """Choose for each link the class it carries so that few packets wait; see the card in README.md.

    Example:
        >>> env = MultihopEnv(MultihopConfig(networks=("two-path", "cross")), num_envs=8, seed=0)
        >>> env.rollout(3, break_when_any_done=False)["next", "reward"].shape
        torch.Size([8, 3, 1])
    """

    pairs: Tensor
    constant: Tensor

    def setup(self) -> None:
        """The networks, kept once; each world refers to one by its number."""
        self.instances = scenario.instances_of(self.config)
        self.networks = networks_of(self.instances)
        self.graph = observe.graph_spec(self.networks)
        self.actions = ChooseEdgePerGroup(self.networks.num_links, self.networks.num_classes)
        self.networks.to(self.device)
        self.register_buffer("pairs", observe.present(self.networks))
        self.register_buffer("constant", observe.constant_features(self.networks))

    def spawn(self, count: int) -> Entries:
        """New worlds, each on one of the networks, without packets."""
        network = torch.randint(len(self.networks), (count,), generator=self.generator, device=self.device)
        capacity = scenario.draw_capacity(self.networks, network, self.generator)
        return scenario.empty_worlds(network, self.networks, capacity)

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Carry the chosen classes, deliver, admit arrivals, draw new capacities."""
        capacity = state["capacity"]
        request = dynamics.full_load(action, capacity, self.networks.num_classes)
        return self.advance_by(state, request)

    def advance_by(self, state: TensorDict, request: Tensor) -> Transition:
        """The same for requests of any size, `[B, M, K]`, which a link may split between classes."""
        network, config = state["network"], self.config
        wiring = self.networks.wiring(network)
        queues, carried, delivered = dynamics.transmit(
            state["queues"],
            request,
            capacity=state["capacity"],
            wiring=wiring,
            order=dynamics.random_order(wiring.start, self.generator),
        )
        backlog = dynamics.backlog(queues)
        overflow = backlog > config.max_backlog
        arrivals = scenario.draw_arrivals(self.networks, network, self.generator)
        after = {
            "queues": queues + arrivals,
            "capacity": scenario.draw_capacity(self.networks, network, self.generator),
            "carried": carried.sum(-1),
            "arrived": state["arrived"] + dynamics.backlog(arrivals),
            "delivered": state["delivered"] + delivered.sum(-1),
            "backlog_sum": state["backlog_sum"] + backlog,
            "overflow": overflow,
        }
        cost = backlog + self.overflow_cost * overflow
        return Transition(after, reward=-cost / config.reward_scale, truncated=overflow)

    def load(self, state: TensorDict) -> Tensor:
        """Packets that wait, `[B]`."""
        return dynamics.backlog(state["queues"])

    @property
    def overflow_cost(self) -> float:
        """What a slot costs on top when it overflows."""
        given = self.config.overflow_cost
        return self.config.max_backlog if given is None else given

    def observe(self, state: TensorDict) -> Entries:
        """The graph of pairs of node and class, and how the episode goes."""
        network = state["network"]
        exists, constant = Networks.of(self.pairs, network), Networks.of(self.constant, network)
        return {
            "graph": observe.graph(state, exists=exists, constant=constant),
            "metrics": observe.metrics(state),
        }

    def mask(self, state: TensorDict) -> Tensor:
        """What each link may carry, `[B, M, 1 + K]`, none first."""
        allowed = dynamics.choices(state["queues"], self.networks.wiring(state["network"]))
        if self.config.idle_allowed:
            allowed[..., 0] = True
        return allowed
