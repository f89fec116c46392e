"""Index rules: a number for each queue, of which each server works on the one with the highest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reentrant.dynamics import at_next
from edgewise.systems.reentrant.tables import Tables

SCALES = 3.0
"""Largest absolute logarithm of the scale of a potential."""
OFFSETS = 2.0
"""Largest absolute offset of a potential."""

Rule = Callable[[Tables, Tensor, Tensor], Tensor]
"""Maps tables, jobs `[B, Q]` and networks `[B]` to indices `[B, Q]`."""


def cmu(tables: Tables, jobs: Tensor, network: Tensor) -> Tensor:  # noqa: ARG001
    """Holding cost times service rate."""
    return tables.of(tables.cost * tables.service_rate, network)


def maxweight(tables: Tables, jobs: Tensor, network: Tensor) -> Tensor:
    """Cost times jobs times service rate."""
    return cmu(tables, jobs, network) * jobs


def backpressure(tables: Tables, jobs: Tensor, network: Tensor) -> Tensor:
    """Service rate times the difference of jobs to the next queue."""
    return _pressure(tables, jobs, network)


def root_backpressure(tables: Tables, jobs: Tensor, network: Tensor) -> Tensor:
    """Service rate times the difference of the square roots of jobs to the next queue."""
    return _pressure(tables, jobs.sqrt(), network)


def root_maxweight(tables: Tables, jobs: Tensor, network: Tensor) -> Tensor:
    """Cost times the square root of jobs times service rate."""
    return cmu(tables, jobs, network) * jobs.sqrt()


def srpt(tables: Tables, jobs: Tensor, network: Tensor) -> Tensor:  # noqa: ARG001
    """Least service time that a job still needs, at all its servers."""
    return -tables.of(tables.work, network)


def lbfs(tables: Tables, jobs: Tensor, network: Tensor) -> Tensor:  # noqa: ARG001
    """Last buffer first: fewest queues that a job still visits."""
    return -tables.of(tables.hops, network)


def _pressure(tables: Tables, weight: Tensor, network: Tensor) -> Tensor:
    weight = tables.of(tables.cost, network) * weight
    return tables.of(tables.service_rate, network) * (
        weight - at_next(weight, tables.of(tables.next_queue, network))
    )


@dataclass(frozen=True)
class Potential:
    """What a job in a queue of x jobs counts: `scale * x ** exponent + offset`, and zero outside.

    Attributes:
        scale, exponent, offset: `[B, Q]`.
        push: `[B, Q]`, weight of the potential of the next queue.
    """

    scale: Tensor
    exponent: Tensor
    offset: Tensor
    push: Tensor

    @classmethod
    def of(cls, action: Tensor) -> Potential:
        """Return the potentials of actions `[B, Q, 4]` between -1 and 1; zeros give `root_backpressure`."""
        scale, exponent, offset, push = action.unbind(-1)
        return cls(torch.exp(SCALES * scale), (1 + exponent) / 2, OFFSETS * offset, 1 + push)


def potential_index(tables: Tables, jobs: Tensor, network: Tensor, potential: Potential) -> Tensor:
    """Return the service rate times the fall of the potential when a job moves on, `[B, Q]`.

    Args:
        tables: of the networks.
        jobs: `[B, Q]`.
        network: `[B]` int64.
        potential: of each queue.
    """
    height = potential.scale * jobs.pow(potential.exponent) + potential.offset
    height = tables.of(tables.cost, network) * height
    fall = height - potential.push * at_next(height, tables.of(tables.next_queue, network))
    return tables.of(tables.service_rate, network) * fall


def action_of(name: str, tables: Tables) -> Tensor:
    """Return the action `[G, Q, 4]` with which potentials give the order of an index rule at every server.

    That of `srpt` and `lbfs` is exact if service times at a server differ by less than a factor of 100.
    """
    action = torch.zeros(*tables.queue_mask.shape, 4, device=tables.cost.device)
    exponent, push = {
        "cmu": (-1.0, -1.0),
        "maxweight": (1.0, -1.0),
        "root-maxweight": (0.0, -1.0),
        "backpressure": (1.0, 0.0),
        "root-backpressure": (0.0, 0.0),
    }.get(name, (-1.0, -1.0))
    action[..., 1], action[..., 3] = exponent, push
    if name in ("srpt", "lbfs"):
        left = tables.work if name == "srpt" else tables.hops
        same = tables.server.unsqueeze(1) == tables.server.unsqueeze(2)
        same = same & tables.queue_mask.unsqueeze(1)
        before = ((left.unsqueeze(1) < left.unsqueeze(2)) & same).sum(-1)
        time = (tables.service_rate.clamp_min(1e-9) * tables.unit.unsqueeze(-1)).reciprocal()
        price = tables.cost.clamp_min(1e-9)
        action[..., 0] = ((time.log() - price.log() - 0.4 * before) / SCALES).clamp(-1, 1)
    return action * tables.queue_mask.unsqueeze(-1)


RULES: Mapping[str, Rule] = {
    "cmu": cmu,
    "maxweight": maxweight,
    "backpressure": backpressure,
    "root-maxweight": root_maxweight,
    "root-backpressure": root_backpressure,
    "srpt": srpt,
    "lbfs": lbfs,
}
"""Rules by name."""
