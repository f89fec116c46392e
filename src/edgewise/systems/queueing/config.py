"""Settings of the `queueing` environment, and names of its graphs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from edgewise.config.bounds import FRAMES, REAL, ROWS, Real
from edgewise.config.model import AppliesIf, Config
from edgewise.envs.ranges import RealRange, lower_bound, upper_bound

Kind = Literal[
    "line", "ring", "star", "clique", "tree", "grid", "bipartite", "geometric", "barabasi", "edges"
]

_SHAPE = re.compile(r"(line|ring|star|clique|tree)(\d+)")
_PRODUCT = re.compile(r"(grid|bipartite)(\d+)x(\d+)")
_RANDOM = re.compile(r"(geometric|barabasi)(\d+)(?:\*(\d+))?")
_EDGES = re.compile(r"(\d+):((?:\d+-\d+(?:,\d+-\d+)*)?)")
_SMALLEST = {"line": 1, "ring": 3, "star": 2, "clique": 1, "tree": 1, "geometric": 1, "barabasi": 3}
_EXAMPLES = (
    "line8, ring10, star5, clique4, tree7, grid3x4, bipartite3x4, geometric12, barabasi20, geometric12*20 "
    "or 5:0-1,0-2,3-4"
)


@dataclass(frozen=True)
class GraphName:
    """A parsed graph name: `grid3x4` has kind `grid`, 12 nodes and shape (3, 4)."""

    kind: Kind
    num_nodes: int
    shape: tuple[int, int] = (0, 0)
    copies: int = 1
    edges: tuple[tuple[int, int], ...] = ()


def parse_graph(name: str) -> GraphName:
    """Parse a graph name.

    Raises:
        ValueError: the name is invalid; the message has examples.
    """
    if found := _SHAPE.fullmatch(name):
        kind, count = found[1], int(found[2])
        if count < _SMALLEST[kind]:
            raise ValueError(f"{name}: a {kind} has at least {_SMALLEST[kind]} nodes")
        return GraphName(kind, count)  # type: ignore[arg-type]
    if found := _PRODUCT.fullmatch(name):
        kind, rows, columns = found[1], int(found[2]), int(found[3])
        if rows * columns == 0:
            what = "one row and one column" if kind == "grid" else "one node on each side"
            raise ValueError(f"{name}: a {kind} has at least {what}")
        count = rows * columns if kind == "grid" else rows + columns
        return GraphName(kind, count, shape=(rows, columns))  # type: ignore[arg-type]
    if found := _RANDOM.fullmatch(name):
        kind, count, copies = found[1], int(found[2]), int(found[3] or 1)
        if count < _SMALLEST[kind] or copies == 0:
            fewest = "one node" if kind == "geometric" else "three nodes"
            raise ValueError(f"{name}: give at least {fewest} and one copy")
        return GraphName(kind, count, copies=copies)  # type: ignore[arg-type]
    if found := _EDGES.fullmatch(name):
        return _parse_edges(name, int(found[1]), found[2])
    raise ValueError(f"{name!r} is not a graph name: use {_EXAMPLES}")


def _parse_edges(name: str, num_nodes: int, text: str) -> GraphName:
    pairs = [tuple(map(int, pair.split("-"))) for pair in text.split(",") if pair]
    for low, high in pairs:
        if low == high:
            raise ValueError(f"{name}: {low}-{high} joins a node to itself; omit it")
        if max(low, high) >= num_nodes:
            raise ValueError(f"{name}: {low}-{high} names a node beyond the last, {num_nodes - 1}")
    if num_nodes == 0:
        raise ValueError(f"{name}: give at least one node")
    return GraphName("edges", num_nodes, edges=tuple({(min(pair), max(pair)): None for pair in pairs}))


IF_NO_LOAD = AppliesIf("there is no load", lambda _, own: own.load is None)
IF_ONE_RATE = AppliesIf(
    "there are no load and no arrival_rates", lambda _, own: own.load is None and own.arrival_rates is None
)


class QueueingConfig(Config):
    """Conflict-graph scheduling; the environment card explains each setting."""

    removed: ClassVar[Mapping[str, Any]] = {"overflow_cost": None, "service_deviation": 1.0}

    graphs: tuple[str, ...] = Field(("line3",), min_length=1)
    """Names of the conflict graphs; each world samples one at reset."""
    graph_seed: int = Field(0, ge=0, lt=2**63)
    """Random seed of the random graphs, independent of the seed of the environment."""
    arrival_law: Literal["bernoulli", "poisson", "fixed"] = "bernoulli"
    """Distribution of the packets that arrive per slot."""
    arrival_rate: Annotated[RealRange, IF_ONE_RATE] = 0.4
    """Mean arrivals per slot at every node, or the range from which each node samples its own at reset."""
    arrival_rates: Annotated[tuple[Real, ...] | None, IF_NO_LOAD] = None
    """One rate per node, in place of `arrival_rate`."""
    load: RealRange | None = None
    """Arrival rate as a fraction of the largest uniform rate that the graph can carry, in place of
    `arrival_rate`; a range is sampled per world."""
    service_law: Annotated[Literal["fixed", "bernoulli", "poisson", "normal"], IF_NO_LOAD] = "fixed"
    """Distribution of the packets that a node can send per slot."""
    service_rate: Annotated[RealRange, IF_NO_LOAD] = 1.0
    """Mean of that distribution at every node, or the range from which each node samples its own at reset."""
    service_rates: Annotated[tuple[Real, ...] | None, IF_NO_LOAD] = None
    """One rate per node, in place of `service_rate`."""
    arrivals_servable: bool = False
    """Whether a packet can leave in the slot of its arrival."""
    initial_queue: int = Field(0, ge=0, le=ROWS)
    """Maximum initial queue length; lengths are uniform from 0 to this."""
    node_priority: Literal["none", "increasing", "random"] = "increasing"
    """Node feature that distinguishes interchangeable nodes."""
    prior: Literal["none", "weight", "degree-weight"] = "none"
    """What is observed as `action_prior`, for models with `model.prior`: `weight`, queue times channel of
    each node; `degree-weight`, that times the degree of the node over the mean degree of its graph."""
    interference_penalty: float = Field(0.0, ge=0.0, le=REAL)
    """Cost of each node that a conflict silences."""
    max_backlog: float = Field(1000.0, gt=0.0, le=REAL)
    """Number of waiting packets above which an episode is truncated; that slot costs as many
    in addition."""
    reward_scale: Annotated[float, Field(gt=0.0, le=REAL)] | Literal["nodes"] = 1.0
    """Divisor of the costs: a number, or `nodes` for the number of nodes of each graph, so that worlds with
    large graphs do not outweigh the others in training."""
    max_steps: int = Field(1000, gt=0, le=FRAMES)
    """Slots of an episode."""

    @field_validator("graphs")
    @classmethod
    def _graphs_are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            parse_graph(name)
        return names

    @model_validator(mode="after")
    def _rates_fit(self) -> Self:
        for field, rates in (("arrival_rate", self.arrival_rates), ("service_rate", self.service_rates)):
            if lower_bound(getattr(self, field)) < 0.0 or min(rates or (0.0,)) < 0.0:
                raise ValueError(f"{field}: a rate cannot be negative")
            for name in self.graphs if rates is not None else ():
                nodes = parse_graph(name).num_nodes
                if nodes != len(rates or ()):
                    raise ValueError(f"{field}s lists {len(rates or ())} rates but {name} has {nodes} nodes")
        return self

    @model_validator(mode="after")
    def _laws_fit_rates(self) -> Self:
        if self.arrival_law == "bernoulli" and self.load is None and self.highest_arrival_rate > 1.0:
            raise ValueError(
                "Bernoulli arrivals cannot exceed one per slot: lower arrival_rate or use poisson"
            )
        if self.service_law == "bernoulli" and self.highest_service_rate > 1.0:
            raise ValueError(
                "Bernoulli service cannot exceed one per slot: lower service_rate or use poisson"
            )
        if self.load is not None and self.arrival_rates is not None:
            raise ValueError("give load or arrival_rates, not both")
        if self.load is not None and (self.service_law, self.service_rate, self.service_rates) != (
            "fixed",
            1.0,
            None,
        ):
            raise ValueError(
                "load is a fraction of the capacity of unit servers: keep service fixed at rate 1"
            )
        if self.load is not None and not 0.0 <= lower_bound(self.load) <= upper_bound(self.load) <= 2.0:
            raise ValueError(f"load is a fraction of capacity from 0 to 2, got {self.load}")
        return self

    @property
    def highest_arrival_rate(self) -> float:
        """Largest possible arrival rate of a node; a graph carries at most one packet per node and slot."""
        if self.load is not None:
            return upper_bound(self.load)
        return upper_bound(self.arrival_rate) if self.arrival_rates is None else max(self.arrival_rates)

    @property
    def highest_service_rate(self) -> float:
        """Largest possible service rate of a node."""
        return upper_bound(self.service_rate) if self.service_rates is None else max(self.service_rates)
