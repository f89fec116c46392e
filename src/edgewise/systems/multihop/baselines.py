"""Routers that need no learning: BackPressure and its kin, and shortest paths; ties by a stated rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.policy import Policy
from edgewise.systems.multihop import routing
from edgewise.systems.multihop.dynamics import Wiring
from edgewise.systems.multihop.env import MultihopEnv
from edgewise.systems.multihop.networks import Networks

Tie = Literal["highest", "lowest", "random"]


@dataclass(frozen=True)
class Ties:
    """Who comes first where pressures are equal.

    Args:
        links: of links of one node that want the same class: the one that comes last in the file
            (`highest`), first (`lowest`), or a new draw in every slot (`random`).
        classes: the same for the classes of one link.
    """

    links: Tie = "highest"
    classes: Tie = "highest"


class Router:
    """A rule from queues and capacities to requests of the links.

    Args:
        networks: the networks it will meet.
        ties: who comes first where pressures are equal.
        seed: of whatever the rule leaves to chance.
    """

    def __init__(self, networks: Networks, *, ties: Ties | None = None, seed: int = 0) -> None:
        self.networks = networks
        self.ties = ties or Ties()
        self.generator = torch.Generator(networks.start.device).manual_seed(seed)

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """Packets that each link asks for, `[B, M, K]`, from queues `[B, N, K]` and capacities `[B, M]`."""
        raise NotImplementedError

    def _ranks(self, network: Tensor) -> dict[str, Tensor]:
        """The ranks that break ties between links `[B, M]` and between classes `[B, M, K]`."""
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
    """Each link sends the class whose queue falls most along it, if any does (Tassiulas, Ephremides)."""

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """At full capacity, in decreasing pressure times capacity until a queue is empty."""
        wiring = self.networks.wiring(network)
        bias = self.bias(network, wiring)
        return routing.back_pressure(queues, capacity, wiring=wiring, bias=bias, **self._ranks(network))

    def bias(self, network: Tensor, wiring: Wiring) -> Tensor | None:  # noqa: ARG002
        """What is added to the difference of queues, `[B, M, K]`; None for nothing."""
        return None


class BiasedBackPressure(BackPressure):
    """BackPressure that leans towards shorter ways, a link being as long as one over its rate."""

    def bias(self, network: Tensor, wiring: Wiring) -> Tensor:
        """One over what the link takes off the way, `[B, M, K]`."""
        return routing.distance_bias(Networks.of(self.networks.delay, network), wiring)


class OneLinkBackPressure(Router):
    """BackPressure under interference: each node may use one outgoing link in a slot.

    Args:
        networks: the networks it will meet.
        ties: who comes first where pressures are equal.
        seed: of whatever the rule leaves to chance.
        power_weight: what a unit of power costs against pressure times capacity.
    """

    def __init__(
        self, networks: Networks, *, ties: Ties | None = None, seed: int = 0, power_weight: float = 0.0
    ) -> None:
        super().__init__(networks, ties=ties, seed=seed)
        self.power_weight = power_weight

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:
        """From one link of each node."""
        return routing.back_pressure_one_link(
            queues,
            capacity,
            wiring=self.networks.wiring(network),
            power_cost=self.power_weight * Networks.of(self.networks.power, network),
            **self._ranks(network),
        )


class ShortestPaths(Router):
    """Each link shares its time evenly among the classes whose shortest ways use it, whatever the queues."""

    def requests(self, queues: Tensor, capacity: Tensor, network: Tensor) -> Tensor:  # noqa: ARG002
        """One class for each link, drawn."""
        wiring = self.networks.wiring(network)
        distance = Networks.of(self.networks.delay, network)
        length = 1.0 / Networks.of(self.networks.rate, network).double()
        return routing.split_over(routing.shortest_ways(distance, length, wiring), capacity, self.generator)


ROUTERS: Mapping[str, type[Router]] = {
    "backpressure": BackPressure,
    "spbp": BiasedBackPressure,
    "bpi": OneLinkBackPressure,
    "spts": ShortestPaths,
}


def as_policy(router: Router) -> Policy:
    """A router as a policy of the environment: each link chooses the class that it asks for, or none.

    The environment serves links in random order, so where several links of a node ask for more of a class
    than is queued, which of them goes short is left to chance; `simulate.baseline_run` keeps to the
    router's own order.
    """

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        request = router.requests(state["queues"], state["capacity"], state["network"])
        amount, kind = request.max(-1)
        choice = torch.where(amount > 0, kind + 1, 0)
        allowed = tensordict["action_mask"].gather(-1, choice.unsqueeze(-1)).squeeze(-1)
        first = tensordict["action_mask"].int().argmax(-1)
        return tensordict.set("action", torch.where(allowed, choice, first))

    return policy


def _factory(name: str) -> Callable[[MultihopEnv], Policy]:
    return lambda env: as_policy(ROUTERS[name](env.networks))


BASELINES: Mapping[str, Callable[[MultihopEnv], Policy]] = {name: _factory(name) for name in ROUTERS}
