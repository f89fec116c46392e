"""One slot of scheduling on a conflict graph, for batches of worlds: conflicts, service, arrivals."""

from __future__ import annotations

from torch import Tensor

from edgewise.systems.queueing.sets.bits import pack


def resolve(active: Tensor, neighbours: Tensor) -> Tensor:
    """Resolve conflicts: a node stays active if it has no active neighbour.

    Args:
        active: `[*B, N]` bool.
        neighbours: `[*B, N, W]` int64, each node's neighbours as bit words of `pack`.

    Returns:
        `[*B, N]` bool, an independent set.
    """
    return active & ~(neighbours & pack(active).unsqueeze(-2)).any(-1)


def slot(
    queues: Tensor, service: Tensor, *, active: Tensor, arrivals: Tensor, arrivals_servable: bool = False
) -> Tensor:
    """Compute the queues at the end of a slot; all tensors are `[*B, N]`.

    Args:
        queues: queues at the start of the slot.
        service: packets each node could send.
        active: bool, an independent set.
        arrivals: arriving packets.
        arrivals_servable: whether a packet may leave in the slot of its arrival.
    """
    sent = service * active
    if arrivals_servable:
        return (queues - sent + arrivals).clamp_min(0.0)
    return (queues - sent).clamp_min(0.0) + arrivals


def departures(queues: Tensor, after: Tensor, arrivals: Tensor) -> Tensor:
    """Compute the packets that left in a slot, by conservation, `[*B, N]`."""
    return queues + arrivals - after


def servable(queues: Tensor, service: Tensor, *, arrivals_servable: bool = False) -> Tensor:
    """Return the nodes whose activation can send something, `[*B, N]` bool."""
    return (service > 0) if arrivals_servable else (queues > 0) & (service > 0)


def backlog(queues: Tensor) -> Tensor:
    """Sum the packets of a world, `[*B, N]` to `[*B]`."""
    return queues.sum(-1)
