"""One slot of a multi-class multi-hop network, for batches of worlds: request, carry, deliver, admit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Wiring:
    """The links of a batch of networks, sorted by start.

    Attributes:
        start, end: `[*B, M]` int64, non-decreasing starts.
        first: `[*B, M]` int64, index of the first link with the same start.
        destination: `[*B, K]` int64.
        usable: `[*B, M, K]` bool, whether the link exists and the destination of the class can be reached
            from its end.
    """

    start: Tensor
    end: Tensor
    first: Tensor
    destination: Tensor
    usable: Tensor


def within_capacity(request: Tensor, capacity: Tensor) -> Tensor:
    """Clip requests `[*B, M, K]` to the capacity `[*B, M]` of their link, in the order of classes."""
    before = request.cumsum(-1) - request
    return torch.minimum(request, (capacity.unsqueeze(-1) - before).clamp_min(0.0))


def random_order(start: Tensor, generator: torch.Generator | None) -> Tensor:
    """Sample a permutation of the links that keeps those with the same start together, `[*B, M]` int64."""
    draw = torch.rand(start.shape, generator=generator, device=start.device)
    return (start + 0.5 * draw).argsort(-1)


def carry(queues: Tensor, request: Tensor, *, wiring: Wiring, order: Tensor) -> Tensor:
    """Compute what links carry if they are served in `order` from the queues at the start of the slot.

    Each link takes `min(request, left)`, and `left = max(queue - earlier requests, 0)`. A cumulative sum of
    the requests along the order therefore replaces a loop over links.

    Args:
        queues: `[*B, N, K]` at the start of the slot.
        request: `[*B, M, K]`, within capacity and zero if unusable.
        wiring: the links.
        order: `[*B, M]` int64, `order[p]` is the link served in place p; sorted by start, as the wiring.

    Returns:
        `[*B, M, K]` packets carried.
    """
    place = order.unsqueeze(-1).expand_as(request)
    asked = request.gather(-2, place)
    total = asked.cumsum(-2) - asked
    before = total - total.gather(-2, wiring.first.unsqueeze(-1).expand_as(total))
    left = (at_nodes(queues, wiring.start) - before).clamp_min(0.0)
    return torch.zeros_like(request).scatter(-2, place, torch.minimum(asked, left))


def at_nodes(queues: Tensor, node: Tensor) -> Tensor:
    """Gather the queues at given nodes, `[*B, N, K]` and `[*B, M]` to `[*B, M, K]`."""
    return queues.gather(-2, node.unsqueeze(-1).expand(*node.shape, queues.shape[-1]))


def move(queues: Tensor, carried: Tensor, wiring: Wiring) -> Tensor:
    """Move carried packets from start to end and return the queues, `[*B, N, K]`."""
    start = wiring.start.unsqueeze(-1).expand_as(carried)
    end = wiring.end.unsqueeze(-1).expand_as(carried)
    return queues.scatter_add(-2, start, -carried).scatter_add(-2, end, carried)


def deliver(queues: Tensor, destination: Tensor) -> tuple[Tensor, Tensor]:
    """Remove packets at their destination; return queues `[*B, N, K]` and delivered packets `[*B, K]`."""
    place = destination.unsqueeze(-2)
    return queues.scatter(-2, place, 0.0), queues.gather(-2, place).squeeze(-2)


def transmit(
    queues: Tensor, request: Tensor, *, capacity: Tensor, wiring: Wiring, order: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the first two phases of a slot: transmission and delivery.

    Args:
        queues: `[*B, N, K]`.
        request: `[*B, M, K]`, packets that each link requests.
        capacity: `[*B, M]`.
        wiring: the links.
        order: `[*B, M]`, see `carry`.

    Returns:
        Queues `[*B, N, K]` before arrivals, packets carried `[*B, M, K]` and packets delivered `[*B, K]`.
    """
    allowed = within_capacity(request.clamp_min(0.0) * wiring.usable, capacity)
    carried = carry(queues, allowed, wiring=wiring, order=order)
    after, delivered = deliver(move(queues, carried, wiring), wiring.destination)
    return after, carried, delivered


def choices(queues: Tensor, wiring: Wiring) -> Tensor:
    """Return the classes a link may choose, `[*B, M, 1 + K]` bool; 0 (none) only if no class is possible."""
    waiting = wiring.usable & (at_nodes(queues, wiring.start) > 0)
    return torch.cat((~waiting.any(-1, keepdim=True), waiting), -1)


def full_capacity_requests(choice: Tensor, capacity: Tensor, num_classes: int) -> Tensor:
    """Turn choices `[*B, M]` (0 is none) into requests `[*B, M, K]` of the whole capacity."""
    classes = torch.arange(1, num_classes + 1, device=choice.device)
    return (choice.unsqueeze(-1) == classes) * capacity.unsqueeze(-1)


def backlog(queues: Tensor) -> Tensor:
    """Sum the packets of a world, `[*B, N, K]` to `[*B]`."""
    return queues.sum((-2, -1))
