"""Initial states: which network a world has, and how many jobs wait in each of its queues."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from edgewise.systems.reentrant.tables import Tables


def sample_worlds(
    count: int, tables: Tables, *, initial_jobs: float, generator: torch.Generator
) -> dict[str, Tensor]:
    """Sample worlds, each on one of the networks, with geometric numbers of jobs.

    Args:
        count: number of worlds.
        tables: the networks.
        initial_jobs: mean number of jobs in each queue.
        generator: source of randomness.

    Returns:
        `network`, `cost_sum` and `time` `[count]`; `jobs` `[count, Q]`; and for replays `server` and `onward`
        `[count, Q]`, -1 for absent queues and where jobs leave.
    """
    device = tables.cost.device
    network = torch.randint(len(tables), (count,), generator=generator, device=device)
    exists = tables.of(tables.queue_mask, network)
    draw = torch.rand(exists.shape, generator=generator, device=device).double().clamp_min(1e-12)
    jobs = torch.zeros_like(draw)
    if initial_jobs > 0:
        jobs = (draw.log() / math.log(initial_jobs / (1 + initial_jobs))).floor()
    nothing = torch.zeros(count, dtype=torch.float64, device=device)
    onward = tables.of(tables.next_queue, network)
    return {
        "network": network,
        "jobs": jobs.float() * exists,
        "cost_sum": nothing,
        "time": nothing.clone(),
        "server": tables.of(tables.server, network).masked_fill(~exists, -1).short(),
        "onward": onward.masked_fill(onward == tables.num_queues, -1).short(),
    }
