"""Settings of graphwalk. Never imports torch."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from edgewise.config.model import Config
from edgewise.envs.ranges import WholeRange, highest, lowest


class GraphwalkConfig(Config):
    """Which graphs are walked, and how long."""

    num_nodes: WholeRange = (4, 12)
    """Nodes of a graph, or the range they are drawn from."""
    extra_edges: int = Field(2, ge=0)
    """Edges beside those that just connect the graph; fewer where they do not fit."""
    max_steps: int = Field(40, gt=0)
    """Steps after which a walk is cut off."""
    max_nodes: int | None = None
    """Room for nodes, for stages that grow; as many as `num_nodes` needs if not given."""

    @property
    def capacity(self) -> int:
        """How many nodes a graph has room for."""
        return int(highest(self.num_nodes)) if self.max_nodes is None else self.max_nodes

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lowest(self.num_nodes) < 2:
            raise ValueError(f"a walk needs at least 2 nodes, got num_nodes {self.num_nodes}")
        if highest(self.num_nodes) > self.capacity:
            raise ValueError(f"num_nodes {self.num_nodes} needs more room than max_nodes {self.max_nodes}")
        return self
