"""Settings of the problems. Never imports torch, so that errors are reported quickly."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgewise.config.bounds import NODES, REAL
from edgewise.config.model import Config
from edgewise.envs.ranges import RealRange, WholeRange


class TSPConfig(Config):
    """Settings of the travelling salesman."""

    num_cities: WholeRange = 20
    """Cities in the unit square, two or more, or the range that their number is drawn from."""


class CVRPConfig(Config):
    """Settings of vehicle routing with a capacity."""

    num_customers: WholeRange = 20
    """Customers in the unit square, or the range that their number is drawn from."""
    capacity: float = Field(30.0, ge=9, le=REAL)
    """Capacity of the vehicle; demands are whole numbers from 1 to 9."""


class CVRPTWConfig(CVRPConfig):
    """Settings of vehicle routing with time windows. Distances are travel times."""

    horizon: float = Field(4.6, gt=3, le=REAL)
    """Time at which the depot closes."""
    service: float = Field(0.2, ge=0, le=REAL)
    """Time that serving a customer takes."""
    window: RealRange = (0.4, 1.2)
    """Length of the time window of a customer, or the range that it is drawn from."""


class JobShopConfig(Config):
    """Settings of job shops."""

    num_jobs: WholeRange = 10
    """Jobs, or the range that their number is drawn from."""
    num_machines: WholeRange = 10
    """Machines, each of which every job visits once, or the range that their number is drawn from."""
    durations: WholeRange = (1, 99)
    """Range that the duration of an operation is drawn from."""
    active: bool = True
    """Whether only active schedules can be built, in which no operation could begin earlier without delaying
    another. The best schedule is one of them (https://doi.org/10.1287/opre.8.4.487)."""


class SelectionConfig(Config):
    """Settings of random graphs."""

    num_nodes: WholeRange = 20
    """Nodes of a graph, six or more, or the range that their number is drawn from."""
    family: Literal["er", "ba", "ws"] = "er"
    """Random graphs of Erdős and Rényi, of Barabási and Albert, or of Watts and Strogatz."""
    density: RealRange = 0.15
    """Probability of an edge between two nodes, or its range, in graphs of Erdős and Rényi."""
    attachment: int = Field(4, ge=1, le=NODES)
    """Edges of each new node, in graphs of Barabási and Albert."""
    neighbours: int = Field(4, ge=2, le=NODES)
    """Neighbours of each node before rewiring, an even number, in graphs of Watts and Strogatz."""
    rewiring: float = Field(0.3, ge=0, le=1)
    """Probability with which an edge is rewired, in graphs of Watts and Strogatz."""


class VertexCoverConfig(SelectionConfig):
    """Settings of weighted vertex cover."""

    num_nodes: WholeRange = (5, 15)
    """Nodes of a graph, five or more, or the range that their number is drawn from."""
    family: Literal["er", "ba", "ws"] = "ws"
    """Random graphs of Erdős and Rényi, of Barabási and Albert, or of Watts and Strogatz."""
    weighted: bool = True
    """Whether nodes have weights, uniform in [0, 1]; otherwise all are 1."""


class IndependentSetConfig(SelectionConfig):
    """Settings of the largest independent set."""


class MaxCutConfig(SelectionConfig):
    """Settings of max-cut."""

    num_nodes: WholeRange = 40
    """Nodes of a graph, six or more, or the range that their number is drawn from."""
    signs: bool = False
    """Whether weights of edges are +1 or -1 with equal probability; otherwise all are 1."""
    steps_per_node: float = Field(2.0, gt=0, le=REAL)
    """Flips after which an episode ends, as a multiple of the number of nodes."""


class ColoringConfig(SelectionConfig):
    """Settings of graph colouring."""

    num_nodes: WholeRange = (10, 20)
    """Nodes of a graph, six or more, or the range that their number is drawn from."""
    density: RealRange = (0.2, 0.5)
    """Probability of an edge between two nodes, or its range, in graphs of Erdős and Rényi."""


class ImmunisationConfig(SelectionConfig):
    """Settings of immunisation."""

    num_nodes: WholeRange = 50
    """Nodes of a graph, six or more, or the range that their number is drawn from."""
    family: Literal["er", "ba", "ws"] = "ba"
    """Random graphs of Erdős and Rényi, of Barabási and Albert, or of Watts and Strogatz."""
    attachment: int = Field(2, ge=1, le=NODES)
    """Edges of each new node, in graphs of Barabási and Albert."""
    share: float = Field(0.2, gt=0, le=1)
    """Share of the nodes that are removed."""
