"""Schedulers that need no learning: MaxWeight and its rivals, ties broken by a stated rule or by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.policy import Policy
from edgewise.systems.queueing.env import QueueingEnv
from edgewise.systems.queueing.schedulers import SetScheduler, local_greedy, local_maxima

Tie = Literal["lowest", "largest", "random"]


class _Scheduler:
    """A rule from queues and channels to an independent set, as a policy.

    Args:
        env: the environment it will act in.
        seed: of whatever the rule leaves to chance.
    """

    def __init__(self, env: QueueingEnv, *, seed: int = 0) -> None:
        self.graphs = env.conflict_graphs
        self.adjacency = self.graphs.adjacency.to(env.device)
        self.generator = torch.Generator(env.device).manual_seed(seed)

    def __call__(self, tensordict: TensorDict) -> TensorDict:
        """Set `action` from `state` and `action_mask`."""
        state, open_nodes = tensordict["state"], tensordict["action_mask"]
        chosen = self.schedule(state, state["queues"] * state["service"], open_nodes)
        return tensordict.set("action", chosen & open_nodes)

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """The nodes to activate, `[B, N]` bool; weight is queue times channel."""
        raise NotImplementedError

    def random_order(self, like: Tensor) -> Tensor:
        """A rank for every node of every world, dealt anew, `[B, N]` int64."""
        return torch.rand(like.shape, generator=self.generator, device=like.device).argsort(-1).argsort(-1)


def _index_order(like: Tensor) -> Tensor:
    return torch.arange(like.shape[-1], device=like.device).expand(like.shape)


class MaxWeight(_Scheduler):
    """The independent set of largest total queue times channel, exactly.

    Args:
        env: the environment it will act in.
        tie: of equally heavy sets, `lowest` takes the one whose highest-numbered member is lowest, then the
            next highest, and so on, counting only members with something to send; `largest` the one with
            most members, then `lowest`; `random` deals new numbers to the nodes in every slot and then
            takes `lowest`.
        seed: for `random`.
    """

    def __init__(self, env: QueueingEnv, *, tie: Tie = "lowest", seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.tie = tie
        self.sets = SetScheduler(self.graphs)

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """The heaviest set."""
        scores = [weight, torch.ones_like(weight)] if self.tie == "largest" else [weight]
        order = self.random_order(weight) if self.tie == "random" else _index_order(weight)
        return self.sets.best(state["conflict_graph"], scores, order=order, counted=open_nodes)


class MaxDepartures(_Scheduler):
    """The set that sends from most queues, then whose senders have most neighbours, then the heaviest.

    Preferring senders with many neighbours empties the queues that are hardest to fit in. On short lines
    this is the delay optimum; on others it need not even be stable.
    """

    def __init__(self, env: QueueingEnv, *, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.sets = SetScheduler(self.graphs)
        self.degree = self.adjacency.sum(-1).float()

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """The busiest set."""
        number, sends = state["conflict_graph"], open_nodes.float()
        scores = [sends, sends * self.degree[number], weight]
        return self.sets.best(number, scores, order=_index_order(weight), counted=open_nodes)


class LocalGreedy(_Scheduler):
    """A maximal set built in rounds by whoever outweighs its neighbours; the lower index wins a tie."""

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """The greedy set."""
        adjacency = self.adjacency[state["conflict_graph"]]
        return local_greedy(weight, adjacency, open_nodes=open_nodes, order=_index_order(weight))


class LocalMax(_Scheduler):
    """Only nodes that outweigh all neighbours at once; not maximal, and unstable at moderate load."""

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """The first round of the greedy set."""
        adjacency = self.adjacency[state["conflict_graph"]]
        return local_maxima(weight, adjacency, open_nodes=open_nodes, order=_index_order(weight))


class RandomMaximal(_Scheduler):
    """One of the graph's maximal sets, all alike likely, whatever the queues."""

    def __init__(self, env: QueueingEnv, *, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.sets = SetScheduler(self.graphs)

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:  # noqa: ARG002
        """A set that looks at nothing."""
        return self.sets.random(state["conflict_graph"], self.generator)


class RandomGreedy(_Scheduler):
    """Nodes with something to send, taken in random order wherever no neighbour was taken before."""

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """A set that looks only at who has something to send."""
        adjacency = self.adjacency[state["conflict_graph"]]
        order = self.random_order(weight)
        return local_greedy(torch.zeros_like(weight), adjacency, open_nodes=open_nodes, order=order)


BASELINES: Mapping[str, Callable[[QueueingEnv], Policy]] = {
    "maxweight": MaxWeight,
    "max-departures": MaxDepartures,
    "local-greedy": LocalGreedy,
    "local-max": LocalMax,
    "random-maximal": RandomMaximal,
    "random-greedy": RandomGreedy,
}
