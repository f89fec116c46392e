"""Routing rules on batches of worlds: BackPressure, plain and biased, one link per node, shortest paths.

Every BackPressure rule answers with requests `[B, M, K]` that never exceed what is queued, so the order in
which links are then served does not matter. Ties are part of a policy: `link_rank` and `class_rank` say who
comes first where pressures are equal.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.multihop.dynamics import Wiring, at_nodes, carry

EQUALLY_LONG = 1e-9
"""Ways whose lengths differ by less are equally long; sums of the same lengths in another order differ so."""


def distance_bias(distance: Tensor, wiring: Wiring) -> Tensor:
    """How much a link shortens the way, turned over: `1 / (D_start - D_end)`, zero where it does not.

    Equal biases must come out equal, since they decide ties: hence double precision, and a margin below which
    two ways count as equally long.

    Args:
        distance: `[*B, N, K]` float64, from each node to each destination; may be infinite.
        wiring: the links.

    Returns:
        `[*B, M, K]` float32: positive for links that lead closer, negative for those that lead away.
    """
    gain = at_nodes(distance, wiring.start) - at_nodes(distance, wiring.end)
    differs = gain.isfinite() & (gain.abs() > EQUALLY_LONG)
    return torch.where(differs, 1.0 / gain, 0.0).float()


def pressure(queues: Tensor, wiring: Wiring, *, bias: Tensor | None = None) -> Tensor:
    """Difference of queues along each link, biased, `[*B, M, K]`; -inf where a class cannot be sent."""
    here = at_nodes(queues, wiring.start)
    difference = here - at_nodes(queues, wiring.end)
    if bias is not None:
        difference = difference + bias
    return difference.masked_fill(~(wiring.usable & (here > 0)), -torch.inf)


def preferred_class(pressures: Tensor, class_rank: Tensor) -> tuple[Tensor, Tensor]:
    """The class of highest pressure on each link and that pressure, both `[*B, M]`; ranks `[*B, M, K]`."""
    highest = pressures.amax(-1, keepdim=True)
    contenders = torch.where(
        pressures == highest, class_rank, class_rank.new_full((), torch.iinfo(torch.int64).max)
    )
    return contenders.argmin(-1), highest.squeeze(-1)


def link_order(score: Tensor, wiring: Wiring, *, link_rank: Tensor) -> Tensor:
    """Links by start, then by decreasing score, then by rank; `[*B, M]` int64, as `carry` takes it."""
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
    """Each link sends the class of highest positive pressure at full capacity.

    Links of a node that want one class are served in decreasing pressure times capacity until its queue is
    empty.

    Args:
        queues: `[B, N, K]`.
        capacity: `[B, M]`.
        wiring: the links.
        link_rank: `[B, M]` int64, lower is served first where the products are equal.
        class_rank: `[B, M, K]` int64, lower is preferred where pressures are equal.
        bias: `[B, M, K]`, added to the difference of queues.

    Returns:
        `[B, M, K]` requests.
    """
    chosen, highest = preferred_class(pressure(queues, wiring, bias=bias), class_rank)
    request = _of_class(chosen, torch.where(highest > 0, capacity, 0.0), queues.shape[-1])
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
    """BackPressure over one outgoing link of each node: that of highest pressure times capacity, less power.

    Args:
        power_cost: `[B, M]`, taken off the product.

    The others and the result are those of `back_pressure`.
    """
    chosen, highest = preferred_class(pressure(queues, wiring, bias=bias), class_rank)
    score = _strength(highest, capacity)
    if power_cost is not None:
        score = torch.where(highest > 0, score - power_cost, score)
    order = link_order(score, wiring, link_rank=link_rank)
    leads = wiring.first == torch.arange(order.shape[-1], device=order.device)
    wins = torch.zeros_like(leads).scatter(-1, order, leads)
    request = _of_class(chosen, torch.where(wins & (highest > 0), capacity, 0.0), queues.shape[-1])
    return torch.minimum(request, at_nodes(queues, wiring.start))


def _strength(highest: Tensor, capacity: Tensor) -> Tensor:
    """Pressure times capacity; minus infinity where nothing presses."""
    return torch.where(highest > 0, highest * capacity, -torch.inf)


def _of_class(chosen: Tensor, amount: Tensor, num_classes: int) -> Tensor:
    """An amount of one class per link, `[*B, M]` each, as `[*B, M, K]`."""
    return torch.nn.functional.one_hot(chosen, num_classes) * amount.unsqueeze(-1)


def shortest_ways(distance: Tensor, length: Tensor, wiring: Wiring) -> Tensor:
    """Whether a link lies on a shortest way of a class, `[*B, M, K]` bool.

    Args:
        distance: `[*B, N, K]` float64, from each node to each destination.
        length: `[*B, M]` float64, of each link.
        wiring: the links.
    """
    gain = at_nodes(distance, wiring.start) - at_nodes(distance, wiring.end)
    return wiring.usable & ((gain - length.unsqueeze(-1)).abs() < EQUALLY_LONG)


def split_over(allowed: Tensor, capacity: Tensor, generator: torch.Generator) -> Tensor:
    """Each link gives its capacity to one of its allowed classes, all alike likely, whatever the queues.

    Args:
        allowed: `[B, M, K]` bool.
        capacity: `[B, M]`.
        generator: draws the classes.

    Returns:
        `[B, M, K]` requests, which may exceed what is queued.
    """
    draw = torch.rand(allowed.shape, generator=generator, device=allowed.device)
    chosen = draw.masked_fill(~allowed, -1.0).argmax(-1)
    return _of_class(chosen, torch.where(allowed.any(-1), capacity, 0.0), allowed.shape[-1])
