"""One slot of a multi-class multi-hop network, on whole batches of worlds: ask, carry, deliver, admit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Wiring:
    """The links of a batch of networks, those with the same start side by side.

    Attributes:
        start, end: `[*B, M]` int64, non-decreasing starts.
        first: `[*B, M]` int64, the slot of the first link with the same start.
        destination: `[*B, K]` int64.
        usable: `[*B, M, K]` bool, whether the link exists and its end can bring the class to its
            destination.
    """

    start: Tensor
    end: Tensor
    first: Tensor
    destination: Tensor
    usable: Tensor


def within_capacity(request: Tensor, capacity: Tensor) -> Tensor:
    """Requests `[*B, M, K]` cut to the capacity `[*B, M]` of their link, classes in order."""
    before = request.cumsum(-1) - request
    return torch.minimum(request, (capacity.unsqueeze(-1) - before).clamp_min(0.0))


def random_order(start: Tensor, generator: torch.Generator | None) -> Tensor:
    """A permutation of link slots that keeps those with the same start together, `[*B, M]` int64."""
    draw = torch.rand(start.shape, generator=generator, device=start.device)
    return (start + 0.5 * draw).argsort(-1)


def carry(queues: Tensor, request: Tensor, *, wiring: Wiring, order: Tensor) -> Tensor:
    """What links carry when they are served in `order`, each from what is left of the start-of-slot queue.

    Serving in turn takes `min(request, left)`, and after some links `left = max(queue - their requests,
    0)`. So a running sum of the requests along the order is all it takes, and no link waits for another.

    Args:
        queues: `[*B, N, K]` at the start of the slot.
        request: `[*B, M, K]`, within capacity and zero where unusable.
        wiring: the links.
        order: `[*B, M]` int64, `order[p]` is the link served at place p; starts are in the same order as in
            the wiring.

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
    """Queues at the given nodes, `[*B, N, K]` and `[*B, M]` to `[*B, M, K]`."""
    return queues.gather(-2, node.unsqueeze(-1).expand(*node.shape, queues.shape[-1]))


def move(queues: Tensor, carried: Tensor, wiring: Wiring) -> Tensor:
    """Queues after packets hopped, `[*B, N, K]`."""
    start = wiring.start.unsqueeze(-1).expand_as(carried)
    end = wiring.end.unsqueeze(-1).expand_as(carried)
    return queues.scatter_add(-2, start, -carried).scatter_add(-2, end, carried)


def deliver(queues: Tensor, destination: Tensor) -> tuple[Tensor, Tensor]:
    """Take packets at their destination out: queues `[*B, N, K]` and what left `[*B, K]`."""
    place = destination.unsqueeze(-2)
    return queues.scatter(-2, place, 0.0), queues.gather(-2, place).squeeze(-2)


def transmit(
    queues: Tensor, request: Tensor, *, capacity: Tensor, wiring: Wiring, order: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The first two parts of a slot: links carry, destinations take out.

    Args:
        queues: `[*B, N, K]`.
        request: `[*B, M, K]` packets that each link asks for.
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
    """Classes a link may choose, `[*B, M, 1 + K]` bool; none (0) only where nothing else can be."""
    waiting = wiring.usable & (at_nodes(queues, wiring.start) > 0)
    return torch.cat((~waiting.any(-1, keepdim=True), waiting), -1)


def full_load(choice: Tensor, capacity: Tensor, num_classes: int) -> Tensor:
    """Requests `[*B, M, K]` of links that give one class all their capacity; choice `[*B, M]`, 0 is none."""
    classes = torch.arange(1, num_classes + 1, device=choice.device)
    return (choice.unsqueeze(-1) == classes) * capacity.unsqueeze(-1)


def backlog(queues: Tensor) -> Tensor:
    """All packets of a world, `[*B, N, K]` to `[*B]`."""
    return queues.sum((-2, -1))
