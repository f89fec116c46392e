"""The jump chain of a queueing network: one arrival or one end of a service after another, for many worlds.

All times are exponential and service is preemptive, so the state is the number of jobs in each queue. The
time between two events is not drawn: every state counts with its mean, one over the total rate of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LOWEST = -1e30
"""Index of a queue that cannot be served."""


@dataclass(frozen=True)
class Chain:
    """The networks of B worlds; see `Tables` for the entries."""

    service_rate: Tensor
    arrival_rate: Tensor
    next_queue: Tensor
    queue_of: Tensor


def queue_to_serve(index: Tensor, jobs: Tensor, chain: Chain) -> tuple[Tensor, Tensor]:
    """Return which queue each server works on: of those with jobs, the one with the highest index.

    Args:
        index: `[B, Q]`.
        jobs: `[B, Q]`.
        chain: of these worlds.

    Returns:
        The queue `[B, S]` int64, and whether the server has one with jobs, `[B, S]` bool.
    """
    index = torch.where(jobs > 0, index, LOWEST)
    outside = index.new_full((len(index), 1), LOWEST)
    own = torch.cat((index, outside), 1).gather(1, chain.queue_of.flatten(1)).view_as(chain.queue_of)
    best, place = own.max(-1)
    return chain.queue_of.gather(-1, place.unsqueeze(-1)).squeeze(-1), best > LOWEST


def event(jobs: Tensor, serving: Tensor, works: Tensor, draw: Tensor, chain: Chain) -> tuple[Tensor, Tensor]:
    """Return the jobs after the next event, and the mean time until it.

    Args:
        jobs: `[B, Q]`.
        serving: `[B, S]` int64, the queue that each server works on.
        works: `[B, S]` bool, whether it works.
        draw: `[B]` uniform in [0, 1).
        chain: of these worlds.

    Returns:
        Jobs `[B, Q]`, and times `[B]`.
    """
    queues = jobs.shape[1]
    rate = torch.where(works, chain.service_rate.gather(1, serving.clamp_max(queues - 1)), 0.0)
    rates = torch.cat((chain.arrival_rate, rate), 1).cumsum(1)
    total = rates[:, -1:]
    # An event has the first number whose cumulated rate is above the draw.
    number = (draw.unsqueeze(1) * total >= rates).sum(1, keepdim=True).clamp_max(rates.shape[1] - 1)
    arrives = number < queues
    source = torch.where(arrives, queues, serving.gather(1, (number - queues).clamp_min(0)))
    outside = source.new_full((len(source), 1), queues)
    target = torch.where(arrives, number, torch.cat((chain.next_queue, outside), 1).gather(1, source))
    one = jobs.new_ones(len(jobs), 1)
    all_jobs = torch.cat((jobs, jobs.new_zeros(len(jobs), 1)), 1)
    moved = all_jobs.scatter_add(1, source, -one).scatter_add(1, target, one)
    return moved[:, :queues], 1 / total.squeeze(1)


def at_next(values: Tensor, next_queue: Tensor) -> Tensor:
    """Return the values of the queues that come next, `[B, Q]`; zero where jobs leave."""
    outside = values.new_zeros(len(values), 1)
    return torch.cat((values, outside), 1).gather(1, next_queue)
