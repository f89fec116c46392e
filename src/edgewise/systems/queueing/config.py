"""Settings of the `queueing` environment, and the short names its graphs go by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from edgewise.config.model import Config
from edgewise.envs.ranges import RealRange, highest, lowest

Kind = Literal["line", "ring", "star", "clique", "grid", "geometric", "edges"]

_SHAPE = re.compile(r"(line|ring|star|clique)(\d+)")
_GRID = re.compile(r"grid(\d+)x(\d+)")
_GEOMETRIC = re.compile(r"geometric(\d+)(?:\*(\d+))?")
_EDGES = re.compile(r"(\d+):((?:\d+-\d+(?:,\d+-\d+)*)?)")
_SMALLEST = {"line": 1, "ring": 3, "star": 2, "clique": 1}
_EXAMPLES = "line8, ring10, star5, clique4, grid3x4, geometric12, geometric12*20 or 5:0-1,0-2,3-4"


@dataclass(frozen=True)
class GraphName:
    """A graph name taken apart: `grid3x4` has kind `grid`, 12 nodes and shape (3, 4)."""

    kind: Kind
    num_nodes: int
    shape: tuple[int, int] = (0, 0)
    copies: int = 1
    edges: tuple[tuple[int, int], ...] = ()


def parse_graph(name: str) -> GraphName:
    """Read a graph name; ValueError says what would do."""
    if found := _SHAPE.fullmatch(name):
        kind, count = found[1], int(found[2])
        if count < _SMALLEST[kind]:
            raise ValueError(f"{name}: a {kind} has at least {_SMALLEST[kind]} nodes")
        return GraphName(kind, count)  # type: ignore[arg-type]
    if found := _GRID.fullmatch(name):
        rows, columns = int(found[1]), int(found[2])
        if rows * columns == 0:
            raise ValueError(f"{name}: a grid has at least one row and one column")
        return GraphName("grid", rows * columns, shape=(rows, columns))
    if found := _GEOMETRIC.fullmatch(name):
        count, copies = int(found[1]), int(found[2] or 1)
        if count == 0 or copies == 0:
            raise ValueError(f"{name}: give at least one node and one copy")
        return GraphName("geometric", count, copies=copies)
    if found := _EDGES.fullmatch(name):
        return _parse_edges(name, int(found[1]), found[2])
    raise ValueError(f"{name!r} is no graph name: use {_EXAMPLES}")


def _parse_edges(name: str, num_nodes: int, text: str) -> GraphName:
    pairs = [tuple(map(int, pair.split("-"))) for pair in text.split(",") if pair]
    for low, high in pairs:
        if low == high:
            raise ValueError(f"{name}: {low}-{high} joins a node to itself; leave it out")
        if max(low, high) >= num_nodes:
            raise ValueError(f"{name}: {low}-{high} names a node beyond the last, {num_nodes - 1}")
    if num_nodes == 0:
        raise ValueError(f"{name}: give at least one node")
    return GraphName("edges", num_nodes, edges=tuple({(min(pair), max(pair)): None for pair in pairs}))


class QueueingConfig(Config):
    """Conflict-graph scheduling; the env card says what each setting does."""

    graphs: tuple[str, ...] = Field(("line3",), min_length=1)
    """Names of the conflict graphs; each world draws one at reset."""
    graph_seed: int = Field(0, ge=0, lt=2**63)
    """Fixes the geometric graphs, whatever the seed of the environment."""
    arrival_law: Literal["bernoulli", "poisson", "fixed"] = "bernoulli"
    """Law of the packets that come in a slot."""
    arrival_rate: RealRange = 0.4
    """Mean arrivals per slot at every node, or the range from which each node draws its own at reset."""
    arrival_rates: tuple[float, ...] | None = None
    """One rate for each node, in place of `arrival_rate`."""
    load: RealRange | None = None
    """Share of the largest uniform rate a graph carries, in place of `arrival_rate`; a range is per world."""
    service_law: Literal["fixed", "bernoulli", "poisson", "normal"] = "fixed"
    """Law of the packets that a node could send in a slot."""
    service_rate: RealRange = 1.0
    """Mean of that law at every node, or the range from which each node draws its own at reset."""
    service_rates: tuple[float, ...] | None = None
    """One rate for each node, in place of `service_rate`."""
    service_deviation: float = Field(1.0, ge=0.0)
    """Standard deviation of `normal` service before rounding."""
    arrivals_servable: bool = False
    """Whether a packet may leave in the slot of its arrival."""
    initial_queue: int = Field(0, ge=0)
    """Queues begin with 0 to this many packets, drawn evenly."""
    node_priority: Literal["none", "increasing", "random"] = "increasing"
    """The feature that tells interchangeable nodes apart."""
    interference_penalty: float = Field(0.0, ge=0.0)
    """Cost of each node silenced by a conflict."""
    max_backlog: float = Field(1000.0, gt=0.0)
    """An episode is truncated when more packets wait."""
    overflow_cost: float | None = Field(None, ge=0.0)
    """Cost of that slot on top; `max_backlog` where not given."""
    reward_scale: float = Field(1.0, gt=0.0)
    """Costs are divided by it."""
    max_steps: int = Field(1000, gt=0)
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
            if lowest(getattr(self, field)) < 0.0 or min(rates or (0.0,)) < 0.0:
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
            raise ValueError("load is a share of what unit servers carry: leave service fixed at rate 1")
        if self.load is not None and not 0.0 <= lowest(self.load) <= highest(self.load) <= 2.0:
            raise ValueError(f"load is a share of capacity from 0 to 2, got {self.load}")
        return self

    @property
    def highest_arrival_rate(self) -> float:
        """The largest arrival rate a node can have; a graph carries at most one packet per node and slot."""
        if self.load is not None:
            return highest(self.load)
        return highest(self.arrival_rate) if self.arrival_rates is None else max(self.arrival_rates)

    @property
    def highest_service_rate(self) -> float:
        """The largest service rate a node can have."""
        return highest(self.service_rate) if self.service_rates is None else max(self.service_rates)
