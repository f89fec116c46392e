"""Routing rules: BackPressure and its variants, and shortest paths, with stated tie rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from edgewise.envs.symlog import symlog
from edgewise.systems.multihop import routing
from edgewise.systems.multihop.dynamics import Wiring
from edgewise.systems.multihop.networks import flow
from edgewise.systems.multihop.networks.batch import Networks

Tie = Literal["highest", "lowest", "random"]


@dataclass(frozen=True)
class Ties:
    """Tie rules for equal pressures.

    Args:
        links: order of links of one node that request the same class: last in the file first (`highest`),
            first in the file first (`lowest`), or random in every slot (`random`).
        classes: the same for the classes of one link.
    """

    links: Tie = "highest"
    classes: Tie = "highest"


class Router:
    """A rule that maps queues and capacities to the links' requests.

    Args:
        networks: networks to route in.
        ties: tie rules for equal pressures.
        seed: random seed of the rule.
    """

    def __init__(self, networks: Networks, *, ties: Ties | None = None, seed: int = 0) -> None:
        self.networks = networks
        self.ties = ties or Ties()
        self.generator = torch.Generator(networks.start.device).manual_seed(seed)

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """Return each link's requests, `[B, M, K]`, from queues `[B, N, K]` and capacities `[B, M]`."""
        raise NotImplementedError

    def _ranks(self, network: Tensor) -> dict[str, Tensor]:
        """Return the ranks that break ties between links `[B, M]` and between classes `[B, M, K]`."""
        number = Networks.of(self.networks.number, network)
        shape = (*number.shape, self.networks.num_classes)
        classes = torch.arange(shape[-1], device=number.device).expand(shape)
        return {
            "link_rank": self._rank(number, self.ties.links),
            "class_rank": self._rank(classes, self.ties.classes),
        }

    def _rank(self, index: Tensor, tie: Tie) -> Tensor:
        if tie == "random":
            draw = torch.rand(index.shape, generator=self.generator, device=index.device)
            return draw.argsort(-1).argsort(-1)
        return -index if tie == "highest" else index


class BackPressure(Router):
    """Each link sends the class with the largest positive queue difference (Tassiulas, Ephremides)."""

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """Request at full capacity, in decreasing pressure times capacity until a queue is empty."""
        bias = self.bias(network, self.networks.wiring(network))
        return self.requests_with(bias, queues, capacity, network)

    def requests_with(self, bias: Tensor | None, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """Return the requests with a given bias `[B, M, K]`, or none."""
        wiring = self.networks.wiring(network)
        return routing.back_pressure(queues, capacity, wiring=wiring, bias=bias, **self._ranks(network))

    def scores(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """Return a score of each class on each link, `[B, M, K]`, positive where the rule sends it.

        It is the symlog of the pressure, negative where the rule does not send the class although its
        pressure is positive: another class is preferred, or other links empty the queue.
        """
        wiring = self.networks.wiring(network)
        pressures = routing.pressure(queues, wiring, bias=self.bias(network, wiring))
        pressures = pressures.masked_fill(pressures.isinf(), 0.0)
        sends = self.requests(queues, capacity, network) > 0
        return symlog(torch.where(sends, pressures, -pressures.abs()))

    def bias(self, network: Tensor, wiring: Wiring) -> Tensor | None:  # noqa: ARG002
        """Return the bias that is added to the queue difference, `[B, M, K]`, or None."""
        return None


class BiasedBackPressure(BackPressure):
    """BackPressure with a bias towards shorter paths; the length of a link is one over its rate."""

    def bias(self, network: Tensor, wiring: Wiring) -> Tensor:
        """Return one over the reduction of the path length, `[B, M, K]`."""
        return routing.distance_bias(Networks.of(self.networks.delay, network), wiring)


class LengthBackPressure(BackPressure):
    """BackPressure in which every unit of path length counts as much as `WEIGHT` packets.

    Biases are differences of a potential, so a packet gains nothing on a detour or a loop, whatever its
    queues. The weight is the best of 4, 8, 16, 32, 64 and 128 on stored networks that no result uses.
    """

    WEIGHT = 64.0

    def bias(self, network: Tensor, wiring: Wiring) -> Tensor:
        """Return the reduction of the path length in packets, `[B, M, K]`."""
        return routing.length_bias(Networks.of(self.networks.delay, network), wiring, weight=self.WEIGHT)


class FlowBackPressure(BackPressure):
    """BackPressure with lengths from the flow of least delay: every unit counts as much as `WEIGHT` packets.

    The length of a link is its marginal delay in that flow, which depends on rates and traffic
    (`networks.flow`). It is computed once for each network. The weight and `flow.FULL` are among the best of
    21 pairs on stored networks that no result uses.
    """

    WEIGHT = 64.0

    def __init__(self, networks: Networks, *, ties: Ties | None = None, seed: int = 0) -> None:
        super().__init__(networks, ties=ties, seed=seed)
        self.distance = torch.stack([_flow_distance(networks, number) for number in range(len(networks))])

    def bias(self, network: Tensor, wiring: Wiring) -> Tensor:
        """Return the reduction of the marginal delay in packets, `[B, M, K]`."""
        return routing.length_bias(Networks.of(self.distance, network), wiring, weight=self.WEIGHT)


def _flow_distance(networks: Networks, number: int) -> Tensor:
    """Return the marginal delay of each node of a network to each destination, `[N, K]` float64."""
    exists, classes = networks.link_mask[number].cpu(), networks.class_mask[number].cpu()
    start, end, rate = (
        table[number].cpu()[exists].numpy() for table in (networks.start, networks.end, networks.rate)
    )
    destination = networks.destination[number].cpu()[classes].numpy()
    arrivals = networks.arrival_rate[number].cpu()[:, classes].double().numpy()
    rate = rate.astype("float64")
    length = flow.marginal_delays(start, end, rate, destination, arrivals)
    found = torch.zeros(networks.num_nodes, networks.num_classes, dtype=torch.float64)
    near = flow.distances_to(start, end, length, destination, networks.num_nodes)
    found[:, classes] = torch.from_numpy(near)
    return found.to(networks.start.device)


class OneLinkBackPressure(Router):
    """BackPressure under interference: each node may use one outgoing link in a slot.

    Args:
        networks: networks to route in.
        ties: tie rules for equal pressures.
        seed: random seed of the rule.
        power_weight: cost of a unit of power, in units of pressure times capacity.
    """

    def __init__(
        self, networks: Networks, *, ties: Ties | None = None, seed: int = 0, power_weight: float = 0.0
    ) -> None:
        super().__init__(networks, ties=ties, seed=seed)
        self.power_weight = power_weight

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """Request from one link of each node."""
        return routing.back_pressure_one_link(
            queues,
            capacity,
            wiring=self.networks.wiring(network),
            power_cost=self.power_weight * Networks.of(self.networks.power, network),
            **self._ranks(network),
        )


class ShortestPaths(Router):
    """Each link serves the classes whose shortest paths use it with equal probability."""

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:  # noqa: ARG002
        """Sample one class for each link."""
        wiring = self.networks.wiring(network)
        distance = Networks.of(self.networks.delay, network)
        length = 1.0 / Networks.of(self.networks.rate, network).double()
        return routing.random_requests(
            routing.on_shortest_path(distance, length, wiring), capacity, self.generator
        )


PRESSURE_ROUTERS: Mapping[str, type[BackPressure]] = {
    "backpressure": BackPressure,
    "spbp": BiasedBackPressure,
    "length-backpressure": LengthBackPressure,
    "flow-backpressure": FlowBackPressure,
}

ROUTERS: Mapping[str, type[Router]] = {
    **PRESSURE_ROUTERS,
    "bpi": OneLinkBackPressure,
    "spts": ShortestPaths,
}
