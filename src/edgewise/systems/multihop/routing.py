"""Routing rules for batches of worlds: BackPressure (plain, biased, one link per node), shortest paths.

BackPressure rules return requests `[B, M, K]` that never exceed the queues, so the order in which links are
served does not matter. `link_rank` and `class_rank` break ties between equal pressures.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.multihop.dynamics import Wiring, at_nodes, carry

LENGTH_TOLERANCE = 1e-9
"""Paths whose lengths differ by less count as equally long, since the order of summation changes rounding."""


def distance_bias(distance: Tensor, wiring: Wiring) -> Tensor:
    """Compute `1 / (D_start - D_end)` for each link and class, zero if both distances are equal.

    Equal biases must be exactly equal because they decide ties. The calculation therefore uses double
    precision and `LENGTH_TOLERANCE`.

    Args:
        distance: `[*B, N, K]` float64, from each node to each destination; may be infinite.
        wiring: the links.

    Returns:
        `[*B, M, K]` float32: positive for links towards the destination, negative for links away from it.
    """
    gain = at_nodes(distance, wiring.start) - at_nodes(distance, wiring.end)
    differs = gain.isfinite() & (gain.abs() > LENGTH_TOLERANCE)
    return torch.where(differs, 1.0 / gain, 0.0).float()


def length_bias(distance: Tensor, wiring: Wiring, *, weight: float) -> Tensor:
    """Compute `weight * (D_start - D_end)` for each link and class, zero if a distance is infinite.

    Args:
        distance: `[*B, N, K]` float64, from each node to each destination; may be infinite.
        wiring: the links.
        weight: packets per unit of length.

    Returns:
        `[*B, M, K]` float32.
    """
    gain = at_nodes(distance, wiring.start) - at_nodes(distance, wiring.end)
    return torch.where(gain.isfinite(), weight * gain, 0.0).float()


def shortest_distances(length: Tensor, wiring: Wiring, *, num_nodes: int) -> Tensor:
    """Compute the shortest distance of every node to each destination, `[*B, N, K]` (Bellman and Ford).

    Args:
        length: `[*B, M]` float64, positive; infinite for absent links.
        wiring: the links.
        num_nodes: N.
    """
    kinds = wiring.destination.shape[-1]
    lead = length.shape[:-1]
    near = length.new_full((*lead, num_nodes, kinds), torch.inf)
    near = near.scatter(-2, wiring.destination.unsqueeze(-2), 0.0)
    start = wiring.start.unsqueeze(-1).expand(*wiring.start.shape, kinds)
    for _ in range(num_nodes - 1):
        over = length.unsqueeze(-1) + at_nodes(near, wiring.end)
        near = near.scatter_reduce(-2, start, over, "amin")
    return near


def pressure(queues: Tensor, wiring: Wiring, *, bias: Tensor | None = None) -> Tensor:
    """Compute queue difference plus bias of each link, `[*B, M, K]`; -inf if nothing can be sent."""
    here = at_nodes(queues, wiring.start)
    difference = here - at_nodes(queues, wiring.end)
    if bias is not None:
        difference = difference + bias
    return difference.masked_fill(~(wiring.usable & (here > 0)), -torch.inf)


def preferred_class(pressures: Tensor, class_rank: Tensor) -> tuple[Tensor, Tensor]:
    """Return the class of highest pressure on each link and that pressure, both `[*B, M]`."""
    highest = pressures.amax(-1, keepdim=True)
    contenders = torch.where(
        pressures == highest, class_rank, class_rank.new_full((), torch.iinfo(torch.int64).max)
    )
    return contenders.argmin(-1), highest.squeeze(-1)


def link_order(score: Tensor, wiring: Wiring, *, link_rank: Tensor) -> Tensor:
    """Sort links by start, then by decreasing score, then by rank; `[*B, M]` int64, the order for `carry`."""
    order = link_rank.argsort(-1)
    order = order.gather(-1, score.gather(-1, order).argsort(dim=-1, descending=True, stable=True))
    return order.gather(-1, wiring.start.gather(-1, order).argsort(dim=-1, stable=True))


def back_pressure(
    queues: Tensor,
    capacity: Tensor,
    *,
    wiring: Wiring,
    link_rank: Tensor,
    class_rank: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Request the class of highest positive pressure at full capacity on each link.

    Links of a node that request the same class are served in decreasing pressure times capacity until its
    queue is empty.

    Args:
        queues: `[B, N, K]`.
        capacity: `[B, M]`.
        wiring: the links.
        link_rank: `[B, M]` int64, lower is served first if products are equal.
        class_rank: `[B, M, K]` int64, lower is preferred if pressures are equal.
        bias: `[B, M, K]`, added to the queue difference.

    Returns:
        `[B, M, K]` requests.
    """
    chosen, highest = preferred_class(pressure(queues, wiring, bias=bias), class_rank)
    request = _one_class(chosen, torch.where(highest > 0, capacity, 0.0), queues.shape[-1])
    order = link_order(_strength(highest, capacity), wiring, link_rank=link_rank)
    return carry(queues, request, wiring=wiring, order=order)


def back_pressure_one_link(
    queues: Tensor,
    capacity: Tensor,
    *,
    wiring: Wiring,
    link_rank: Tensor,
    class_rank: Tensor,
    bias: Tensor | None = None,
    power_cost: Tensor | None = None,
) -> Tensor:
    """Apply BackPressure to one outgoing link of each node: the highest pressure times capacity minus power.

    Args:
        power_cost: `[B, M]`, subtracted from the product.

    The other arguments and the result are those of `back_pressure`.
    """
    chosen, highest = preferred_class(pressure(queues, wiring, bias=bias), class_rank)
    score = _strength(highest, capacity)
    if power_cost is not None:
        score = torch.where(highest > 0, score - power_cost, score)
    order = link_order(score, wiring, link_rank=link_rank)
    leads = wiring.first == torch.arange(order.shape[-1], device=order.device)
    wins = torch.zeros_like(leads).scatter(-1, order, leads)
    request = _one_class(chosen, torch.where(wins & (highest > 0), capacity, 0.0), queues.shape[-1])
    return torch.minimum(request, at_nodes(queues, wiring.start))


def _strength(highest: Tensor, capacity: Tensor) -> Tensor:
    """Compute pressure times capacity; -inf without positive pressure."""
    return torch.where(highest > 0, highest * capacity, -torch.inf)


def _one_class(chosen: Tensor, amount: Tensor, num_classes: int) -> Tensor:
    """Build requests `[*B, M, K]` of one class per link from class and amount, `[*B, M]` each."""
    return torch.nn.functional.one_hot(chosen, num_classes) * amount.unsqueeze(-1)


def on_shortest_path(distance: Tensor, length: Tensor, wiring: Wiring) -> Tensor:
    """Return whether a link lies on a shortest path of a class, `[*B, M, K]` bool.

    Args:
        distance: `[*B, N, K]` float64, from each node to each destination.
        length: `[*B, M]` float64, of each link.
        wiring: the links.
    """
    gain = at_nodes(distance, wiring.start) - at_nodes(distance, wiring.end)
    return wiring.usable & ((gain - length.unsqueeze(-1)).abs() < LENGTH_TOLERANCE)


def random_requests(allowed: Tensor, capacity: Tensor, generator: torch.Generator) -> Tensor:
    """Sample one of the allowed classes for each link uniformly and request its whole capacity.

    Args:
        allowed: `[B, M, K]` bool.
        capacity: `[B, M]`.
        generator: source of randomness.

    Returns:
        `[B, M, K]` requests, which may exceed the queues.
    """
    draw = torch.rand(allowed.shape, generator=generator, device=allowed.device)
    chosen = draw.masked_fill(~allowed, -1.0).argmax(-1)
    return _one_class(chosen, torch.where(allowed.any(-1), capacity, 0.0), allowed.shape[-1])
