"""Networks drawn at random, with as much traffic as a given share of what they can carry."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from edgewise.systems.multihop.instance import Instance, Link, TrafficClass

NEIGHBOURS = 2
"""Nodes that each new node of a drawn network is joined to, which makes a mean degree of about four."""


def barabasi_network(num_nodes: int, *, seed: int, load: float = 0.8) -> Instance:
    """A network grown by preferential attachment (Barabási and Albert, 1999), with random traffic.

    Links run both ways at one rate of 1 to 4. A fifth to two fifths of the nodes are destinations, and each
    has as many sources. Rates are drawn from a gamma law and then scaled together.

    Args:
        num_nodes: N, at least four.
        seed: the same seed gives the same network.
        load: traffic as a share of the most that the links can carry in these proportions.

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
    kept = {"seed": seed, "topology_type": "barabasi_albert"}
    instance = Instance(f"barabasi{num_nodes}-{seed}", num_nodes, tuple(links), tuple(classes), kept=kept)
    return scaled(instance, load * capacity_factor(instance))


def _attach(num_nodes: int, draw: random.Random) -> set[tuple[int, int]]:
    """Undirected edges `(low, high)`; nodes are chosen in proportion to the edges they have."""
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
    """A fifth to two fifths of the nodes, at least one."""
    return max(1, round(num_nodes * draw.uniform(0.2, 0.4)))


def scaled(instance: Instance, factor: float) -> Instance:
    """The same network with all traffic times `factor`, to three digits after the point."""
    classes = tuple(
        TrafficClass(
            traffic.destination,
            {source: round(rate * factor, 3) for source, rate in traffic.sources.items()},
        )
        for traffic in instance.classes
    )
    return replace(instance, classes=classes)


def capacity_factor(instance: Instance) -> float:
    """How many times its traffic a network can carry: above one it can be stable, below one it cannot.

    A linear program over flows of each class on each link: what enters a node leaves it, no link carries more
    than its rate, and the common factor of all arrivals is largest.
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
