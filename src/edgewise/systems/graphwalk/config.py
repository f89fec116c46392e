"""Settings of graphwalk. Never imports torch."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from edgewise.config.bounds import FRAMES, NODES
from edgewise.envs.graphs_config import GraphsConfig
from edgewise.envs.ranges import Whole, WholeRange, lower_bound, upper_bound


class GraphwalkConfig(GraphsConfig):
    """Size of the graphs, or graphs of your own, and length of the episodes."""

    num_nodes: WholeRange = (4, 12)
    """Number of nodes, or the range to sample it from; no effect on given graphs."""
    extra_edges: int = Field(2, ge=0, le=NODES)
    """Edges in addition to a spanning tree, fewer if they do not fit; no effect on given graphs."""
    max_steps: int = Field(40, gt=0, le=FRAMES)
    """Steps after which an episode is truncated."""
    max_nodes: Whole | None = None
    """Capacity in nodes, for curricula that increase `num_nodes`; by default as many as `num_nodes` needs."""

    @property
    def capacity(self) -> int:
        """Number of node slots of a graph."""
        return int(upper_bound(self.num_nodes)) if self.max_nodes is None else self.max_nodes

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lower_bound(self.num_nodes) < 2:
            raise ValueError(f"a walk needs at least 2 nodes, got num_nodes {self.num_nodes}")
        if upper_bound(self.num_nodes) > self.capacity:
            raise ValueError(f"num_nodes {self.num_nodes} exceeds max_nodes {self.max_nodes}")
        return self
