"""The exact delay optimum of small conflict graphs, by relative value iteration on truncated queues.

Service is one packet per slot and arrivals are Bernoulli. Queues hold at most `cap` packets and further
arrivals are lost, which biases the backlog downwards. The result includes the probability of a full queue and
an estimate of the bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.queueing.sets.conflict_graph import ConflictGraph
from edgewise.systems.queueing.sets.listing import maximal_sets

Schedule = Callable[[Tensor], Tensor]
"""Maps queues `[X, N]` to active nodes `[X, N]` bool."""


@dataclass(frozen=True)
class Optimum:
    """The optimal schedule and its mean backlog.

    Attributes:
        backlog: long-run mean number of packets under the optimal schedule.
        cap: maximum length of a queue.
        full: probability that some queue is full under that schedule.
        truncation_bias: change of the backlog with a cap of three quarters; a conservative error estimate.
        sweeps: sweeps of value iteration.
        sets: `[S, N]` bool, the maximal independent sets.
        choice: `[(cap + 1)^N]` int64, the best set in each state, node 0 varying slowest.
    """

    backlog: float
    cap: int
    full: float
    truncation_bias: float
    sweeps: int
    sets: Tensor
    choice: Tensor

    def schedule(self, queues: Tensor) -> Tensor:
        """Return the optimal active nodes `[X, N]` bool for queues `[X, N]`, clipped to the cap."""
        return self.sets[self.choice[_state_index(queues.long().clamp_max(self.cap), self.cap)]]


def optimal_schedule(
    graph: ConflictGraph,
    arrival_rate: Sequence[float],
    *,
    cap: int,
    arrivals_servable: bool = False,
    tolerance: float = 1e-5,
) -> Optimum:
    """Compute the schedule with the lowest long-run backlog.

    Args:
        graph: conflict graph.
        arrival_rate: N Bernoulli rates.
        cap: maximum length of a queue; memory and time grow as `(cap + 1)^N`.
        arrivals_servable: whether a packet may leave in the slot of its arrival.
        tolerance: tolerance of the mean backlog, without truncation bias.

    Example:
        >>> from edgewise.systems.queueing.graphs import conflict_graph
        >>> round(optimal_schedule(conflict_graph("clique2"), [0.4, 0.4], cap=40).backlog, 3)
        1.6
    """
    if len(arrival_rate) != graph.num_nodes:
        raise ValueError(f"{len(arrival_rate)} rates for a graph of {graph.num_nodes} nodes")
    chain = _Chain(arrival_rate, cap=cap, arrivals_servable=arrivals_servable)
    sets = maximal_sets(graph.adjacency)
    assert sets is not None
    value, mean, sweeps = _iterate(lambda h: chain.after(h, sets).amin(0), chain.cost, tolerance)
    choice = chain.after(chain.cost + value, sets).argmin(0).flatten()
    smaller = 3 * cap // 4
    coarse = _Chain(arrival_rate, cap=smaller, arrivals_servable=arrivals_servable)
    _, coarse_mean, _ = _iterate(lambda h: coarse.after(h, sets).amin(0), coarse.cost, tolerance)
    followed = _iterate(
        lambda h: chain.after(h, sets).flatten(1).gather(0, choice.unsqueeze(0)).view(h.shape),
        chain.full,
        tolerance * 0.01,
    )
    return Optimum(mean, cap, followed[1], abs(mean - coarse_mean), sweeps, sets, choice)


def mean_backlog(
    schedule: Schedule,
    arrival_rate: Sequence[float],
    *,
    cap: int,
    arrivals_servable: bool = False,
    tolerance: float = 1e-5,
) -> float:
    """Compute the exact long-run backlog of a schedule that depends on the queues alone.

    Args:
        schedule: maps queues `[X, N]` to active nodes `[X, N]` bool, an independent set.
        arrival_rate: N Bernoulli rates.
        cap: maximum length of a queue.
        arrivals_servable: whether a packet may leave in the slot of its arrival.
        tolerance: tolerance of the result, without truncation bias.
    """
    chain = _Chain(arrival_rate, cap=cap, arrivals_servable=arrivals_servable)
    sets, choice = schedule(chain.states.float()).unique(dim=0, return_inverse=True)
    pick = choice.view(1, *chain.cost.shape)
    return _iterate(lambda h: chain.after(h, sets).gather(0, pick).squeeze(0), chain.cost, tolerance)[1]


class _Chain:
    """The Markov chain of the queues under each schedule.

    Args:
        arrival_rate: N Bernoulli rates.
        cap: maximum length of a queue.
        arrivals_servable: whether a packet may leave in the slot of its arrival.
    """

    def __init__(self, arrival_rate: Sequence[float], *, cap: int, arrivals_servable: bool) -> None:
        self.rates, self.cap, self.arrivals_servable = arrival_rate, cap, arrivals_servable
        axes = [torch.arange(cap + 1)] * len(arrival_rate)
        self.states = torch.cartesian_prod(*axes).view(-1, len(arrival_rate))
        shape = (cap + 1,) * len(arrival_rate)
        self.cost = self.states.sum(-1).double().view(shape)
        self.full = (self.states == cap).any(-1).double().view(shape)

    def after(self, h: Tensor, sets: Tensor) -> Tensor:
        """Compute the expectation of `h` after one slot, for every state and each of the sets, `[S, ...]`."""
        if self.arrivals_servable:
            return torch.stack([self._serve_and_admit(h, members) for members in sets.tolist()])
        for node, rate in enumerate(self.rates):
            h = (1.0 - rate) * h + rate * self._add_packet(h, node)
        return torch.stack([self._serve(h, members) for members in sets.tolist()])

    def _serve_and_admit(self, h: Tensor, members: list[bool]) -> Tensor:
        for node, (rate, active) in enumerate(zip(self.rates, members, strict=True)):
            stays = self._remove_packet(h, node) if active else h
            grows = h if active else self._add_packet(h, node)
            h = (1.0 - rate) * stays + rate * grows
        return h

    def _serve(self, h: Tensor, members: list[bool]) -> Tensor:
        for node, active in enumerate(members):
            h = self._remove_packet(h, node) if active else h
        return h

    def _add_packet(self, h: Tensor, node: int) -> Tensor:
        """Return `h` with one packet added at a node that is not full."""
        return torch.cat((h.narrow(node, 1, self.cap), h.narrow(node, self.cap, 1)), node)

    def _remove_packet(self, h: Tensor, node: int) -> Tensor:
        """Return `h` with one packet removed at a node that is not empty."""
        return torch.cat((h.narrow(node, 0, 1), h.narrow(node, 0, self.cap)), node)


def _iterate(
    step: Callable[[Tensor], Tensor], cost: Tensor, tolerance: float, *, max_sweeps: int = 200_000
) -> tuple[Tensor, float, int]:
    """Run relative value iteration and return values, mean cost and the number of sweeps.

    The mean lies between the smallest and the largest change of a sweep; iteration stops when they agree
    within the tolerance.
    """
    value = torch.zeros_like(cost)
    for sweep in range(1, max_sweeps + 1):
        updated = step(cost + value)
        low, high = (updated - value).aminmax()
        value = updated - updated.flatten()[0]
        if high - low < tolerance:
            return value, float(low + high) / 2.0, sweep
    raise ArithmeticError(
        f"no convergence to {tolerance} in {max_sweeps} sweeps: the rates may exceed the graph's capacity"
    )


def _state_index(queues: Tensor, cap: int) -> Tensor:
    """Return the index of a state, node 0 varying slowest, `[X, N]` to `[X]`."""
    weight = (cap + 1) ** torch.arange(queues.shape[-1] - 1, -1, -1)
    return (queues * weight).sum(-1)
