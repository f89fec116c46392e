"""Baseline schedulers: MaxWeight and others, with ties broken by a fixed rule or at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.policy import Policy
from edgewise.experiments.learning_pays import References
from edgewise.systems.queueing.env import QueueingEnv
from edgewise.systems.queueing.schedulers import SetScheduler, local_greedy, local_maxima

Tie = Literal["lowest", "largest", "random"]


class _Scheduler:
    """A policy that maps queues and channels to an independent set.

    Args:
        env: environment to act in.
        seed: random seed of the rule.
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
        """Return the nodes to activate, `[B, N]` bool; `weight` is queue times channel."""
        raise NotImplementedError

    def random_order(self, like: Tensor) -> Tensor:
        """Sample a random rank for every node, `[B, N]` int64."""
        return torch.rand(like.shape, generator=self.generator, device=like.device).argsort(-1).argsort(-1)


def _index_order(like: Tensor) -> Tensor:
    return torch.arange(like.shape[-1], device=like.device).expand(like.shape)


class MaxWeight(_Scheduler):
    """The exact independent set with the largest sum of queue times channel.

    Args:
        env: environment to act in.
        tie: rule for sets of equal weight. `lowest` compares the highest-numbered members, then the next
            highest, and so on, and takes the lower one; only members with something to send count.
            `largest` takes the set with most members, then applies `lowest`. `random` renumbers the nodes at
            random in every slot, then applies `lowest`.
        seed: random seed of `random`.
    """

    def __init__(self, env: QueueingEnv, *, tie: Tie = "lowest", seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.tie = tie
        self.sets = SetScheduler(self.graphs)

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """Return the heaviest set."""
        scores = [weight, torch.ones_like(weight)] if self.tie == "largest" else [weight]
        order = self.random_order(weight) if self.tie == "random" else _index_order(weight)
        return self.sets.best(state["conflict_graph"], scores, order=order, counted=open_nodes)


class DegreeMaxWeight(MaxWeight):
    """MaxWeight with queues times degrees, so that a hub does not wait for the sum of its neighbours' queues.

    Any fixed positive weights of the nodes keep the queues finite whenever a scheduler can
    (Tassiulas and Ephremides, https://doi.org/10.1109/9.182479).
    """

    def __init__(self, env: QueueingEnv, *, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.degree = self.adjacency.sum(-1).clamp(min=1)

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """Return the set that is heaviest by degrees times weights."""
        return super().schedule(state, weight * self.degree[state["conflict_graph"]], open_nodes)


class PowerMaxWeight(DegreeMaxWeight):
    """MaxWeight with degrees times queues to the power of `ALPHA`.

    A low power lets many short queues outweigh a long one, so that more nodes send, as `max-departures` does;
    unlike there, a long queue is served in the end. The queues stay finite whenever a scheduler can keep them
    so (Shah and Wischik, https://doi.org/10.1214/11-AAP759).
    """

    ALPHA = 0.3

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:  # noqa: ARG002
        """Return the set that is heaviest by degrees times channels times powers of queues."""
        return super().schedule(state, state["queues"] ** self.ALPHA * state["service"], open_nodes)


class MaxDepartures(_Scheduler):
    """The set with most senders, then with the highest total degree of senders, then with the largest weight.

    Preferring senders of high degree empties the queues that are hardest to schedule. This is the delay
    optimum on short lines; on other graphs it may be unstable.
    """

    def __init__(self, env: QueueingEnv, *, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.sets = SetScheduler(self.graphs)
        self.degree = self.adjacency.sum(-1).float()

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """Return the set with most departures."""
        number, sends = state["conflict_graph"], open_nodes.float()
        scores = [sends, sends * self.degree[number], weight]
        return self.sets.best(number, scores, order=_index_order(weight), counted=open_nodes)


class LocalGreedy(_Scheduler):
    """A maximal set built in rounds from nodes that outweigh their neighbours; the lower index wins a tie."""

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """Return the greedy set."""
        adjacency = self.adjacency[state["conflict_graph"]]
        return local_greedy(weight, adjacency, open_nodes=open_nodes, order=_index_order(weight))


class LocalMax(_Scheduler):
    """Nodes that outweigh all their neighbours; not maximal, and unstable at moderate load."""

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """Return the first round of the greedy set."""
        adjacency = self.adjacency[state["conflict_graph"]]
        return local_maxima(weight, adjacency, open_nodes=open_nodes, order=_index_order(weight))


class RandomMaximal(_Scheduler):
    """A uniformly random maximal set of the graph, whatever the queues."""

    def __init__(self, env: QueueingEnv, *, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self.sets = SetScheduler(self.graphs)

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:  # noqa: ARG002
        """Sample a maximal set."""
        return self.sets.random(state["conflict_graph"], self.generator)


class RandomGreedy(_Scheduler):
    """Nodes with something to send, added in random order unless a neighbour was added before."""

    def schedule(self, state: TensorDict, weight: Tensor, open_nodes: Tensor) -> Tensor:
        """Build the set in random order."""
        adjacency = self.adjacency[state["conflict_graph"]]
        order = self.random_order(weight)
        return local_greedy(torch.zeros_like(weight), adjacency, open_nodes=open_nodes, order=order)


BASELINES: Mapping[str, Callable[[QueueingEnv], Policy]] = {
    "maxweight": MaxWeight,
    "degree-maxweight": DegreeMaxWeight,
    "power-maxweight": PowerMaxWeight,
    "max-departures": MaxDepartures,
    "local-greedy": LocalGreedy,
    "local-max": LocalMax,
    "random-maximal": RandomMaximal,
    "random-greedy": RandomGreedy,
}

SHORT_LINES = {"line3", "line4"}
"""Graphs on which `max-departures` is the optimum."""


def references(env: QueueingEnv) -> References:
    """Return the rules that count, and the optimum on short lines."""
    rules = ("maxweight", "degree-maxweight", "power-maxweight", "max-departures")
    return References(rules, "max-departures" if set(env.config.graphs) <= SHORT_LINES else None)
