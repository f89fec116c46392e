"""Random networks with traffic at a given share of their capacity."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from edgewise.systems.multihop.networks.instance import Instance, Link, TrafficClass

NEIGHBOURS = 2
"""Edges of each new node in preferential attachment, which gives a mean degree of about four."""


def barabasi_network(num_nodes: int, *, seed: int, load: float = 0.8) -> Instance:
    """Generate a network by preferential attachment (Barabási and Albert, 1999), with random traffic.

    Links come in both directions with a common rate of 1 to 4. A fifth to two fifths of the nodes are
    destinations, and each has as many sources. Arrival rates follow a gamma distribution and are then scaled.

    Args:
        num_nodes: N, at least four.
        seed: random seed.
        load: traffic as a share of the largest multiple that the links can carry.

    Example:
        >>> barabasi_network(10, seed=0).num_nodes
        10
    """
    draw = random.Random(seed)
    links = []
    for start, end in sorted(_attach(num_nodes, draw)):
        rate = float(draw.randint(1, 4))
        links += [Link(start, end, rate), Link(end, start, rate)]
    classes = []
    for destination in draw.sample(range(num_nodes), _share(num_nodes, draw)):
        others = [node for node in range(num_nodes) if node != destination]
        sources = sorted(draw.sample(others, _share(num_nodes, draw)))
        classes.append(TrafficClass(destination, {node: draw.gammavariate(1.5, 0.5) for node in sources}))
    links.sort(key=lambda link: (link.start, link.end))
    instance = Instance(f"barabasi{num_nodes}-{seed}", num_nodes, tuple(links), tuple(classes))
    return scaled(instance, load * capacity_factor(instance))


def _attach(num_nodes: int, draw: random.Random) -> set[tuple[int, int]]:
    """Sample undirected edges `(low, high)`; nodes are chosen in proportion to their degree."""
    edges = {(0, 1), (0, 2), (1, 2)}
    ends = [node for edge in sorted(edges) for node in edge]
    for node in range(3, num_nodes):
        chosen: set[int] = set()
        while len(chosen) < NEIGHBOURS:
            chosen.add(draw.choice(ends))
        for other in sorted(chosen):
            edges.add((other, node))
            ends += [other, node]
    return edges


def _share(num_nodes: int, draw: random.Random) -> int:
    """Sample a fifth to two fifths of the number of nodes, at least one."""
    return max(1, round(num_nodes * draw.uniform(0.2, 0.4)))


def scaled(instance: Instance, factor: float) -> Instance:
    """Return the network with all traffic multiplied by `factor`, rounded to three decimals."""
    classes = tuple(
        TrafficClass(
            traffic.destination,
            {source: round(rate * factor, 3) for source, rate in traffic.sources.items()},
        )
        for traffic in instance.classes
    )
    return replace(instance, classes=classes)


def capacity_factor(instance: Instance) -> float:
    """Compute the largest multiple of its traffic that a network can carry; it can be stable above one.

    Solves a linear program over the flows of each class on each link: flows are conserved at every node, no
    link exceeds its rate, and the common factor of all arrivals is maximal.
    """
    links, classes, nodes = len(instance.links), len(instance.classes), instance.num_nodes
    flows = links * classes
    balance = np.zeros((classes * nodes, flows + 1))
    for k, traffic in enumerate(instance.classes):
        for m, link in enumerate(instance.links):
            balance[k * nodes + link.start, k * links + m] += 1.0
            balance[k * nodes + link.end, k * links + m] -= 1.0
        for source, rate in traffic.sources.items():
            balance[k * nodes + source, flows] = -rate
    inner = [
        k * nodes + n for k, t in enumerate(instance.classes) for n in range(nodes) if n != t.destination
    ]
    shared = np.zeros((links, flows + 1))
    for m in range(links):
        shared[m, m:flows:links] = 1.0
    cost = np.zeros(flows + 1)
    cost[flows] = -1.0
    rates = [link.rate for link in instance.links]
    plan = linprog(cost, A_ub=shared, b_ub=rates, A_eq=balance[inner], b_eq=np.zeros(len(inner)))
    return float(-plan.fun)
