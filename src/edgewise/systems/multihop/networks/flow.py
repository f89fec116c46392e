"""Link lengths from the flow with the least total delay, for routing rules that know rates and traffic.

A link of rate c that carries a flow f < c holds about f / (c - f) packets, as an M/M/1 queue does. The flow
with the fewest packets in all sends every class along paths that are shortest by the marginal delay
c / (c - f)² (Gallager, https://doi.org/10.1109/TCOM.1977.1093711). BackPressure with these lengths spreads
traffic over several paths before queues have to build up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

ROUNDS = 150
"""Steps of the Frank-Wolfe method."""
FULL = 0.5
"""Share of its rate from which on the marginal delay of a link is continued by its tangent. Lengths that grow
without bound would keep packets from busy links whatever their queues."""


def least_delay_flow(start: Index, end: Index, rate: Array, destination: Index, arrivals: Array) -> Array:
    """Compute the flow of each link `[M]` in the flow with the least total delay.

    Args:
        start: `[M]` int, where links start.
        end: `[M]` int, where they end.
        rate: `[M]`, packets per slot.
        destination: `[K]` int, of each class.
        arrivals: `[N, K]`, packets per slot that enter at each node.
    """
    flow = _shortest_flow(start, end, 1 / rate, destination, arrivals)
    for _ in range(ROUNDS):
        target = _shortest_flow(start, end, marginal_delay(flow, rate), destination, arrivals)
        step = _best_step(flow, target, rate)
        flow = flow + step * (target - flow)
    return flow


def marginal_delays(start: Index, end: Index, rate: Array, destination: Index, arrivals: Array) -> Array:
    """Compute the marginal delay of each link `[M]` in the flow with the least total delay."""
    return marginal_delay(least_delay_flow(start, end, rate, destination, arrivals), rate)


def distances_to(start: Index, end: Index, length: Array, destination: Index, nodes: int) -> Array:
    """Compute the shortest distances of every node to each destination, `[N, K]`; infinite without a path."""
    found = np.full((nodes, len(destination)), np.inf)
    found[destination, np.arange(len(destination))] = 0.0
    for _ in range(nodes):
        over = length[:, None] + found[end]
        nearer = found.copy()
        np.minimum.at(nearer, start, over)
        if np.array_equal(nearer, found):
            break
        found = nearer
    return found


def marginal_delay(flow: Array, rate: Array) -> Array:
    """Return the derivative of the number of packets on a link by its flow `[M]`; linear beyond `FULL`."""
    inside = np.minimum(flow, FULL * rate)
    slope = rate / (rate - inside) ** 2
    return slope + 2 * rate / (rate - inside) ** 3 * (flow - inside)


def _shortest_flow(start: Index, end: Index, length: Array, destination: Index, arrivals: Array) -> Array:
    """Return the flow of each link `[M]` if all traffic takes a shortest path."""
    nodes = len(arrivals)
    distance = distances_to(start, end, length, destination, nodes)
    flow = np.zeros(len(start))
    for k in range(len(destination)):
        over = length + distance[end, k]
        best = np.full(nodes, -1)
        for link in np.argsort(-over, kind="stable"):
            if np.isfinite(over[link]):
                best[start[link]] = link
        load = arrivals[:, k].copy()
        for node in np.argsort(-distance[:, k], kind="stable"):
            if np.isfinite(distance[node, k]) and node != destination[k] and load[node] > 0:
                flow[best[node]] += load[node]
                load[end[best[node]]] += load[node]
    return flow


def _best_step(flow: Array, target: Array, rate: Array) -> float:
    """Return how far to go from a flow to another, in [0, 1], by bisection of the slope of the delay."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        slope = (marginal_delay(flow + middle * (target - flow), rate) * (target - flow)).sum()
        low, high = (low, middle) if slope > 0 else (middle, high)
    return low
