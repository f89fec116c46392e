"""The shape of graphs inside a TensorDict, and their TorchRL specs."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from tensordict import TensorDict
from torch import Tensor
from torchrl.data import Binary, Bounded, Composite, Unbounded

from edgewise.graphs.edges import Edges, EdgeSource, Explicit
from edgewise.graphs.masks import unless_all
from edgewise.graphs.step_spec import StepSpec


@dataclass(frozen=True)
class GraphSpec:
    """The fixed shape of padded graphs, and the source of their edges.

    A graph is a nested TensorDict with the batch size of its parent and these entries:

    | key | shape | when |
    |---|---|---|
    | `x` | `[*B, N, F]` float | always |
    | `node_mask` | `[*B, N]` bool, true where a node exists | always |
    | `edge_index` | `[*B, 2, E]` int64, sources in row 0, targets in row 1 | explicit edges |
    | `edge_mask` | `[*B, E]` bool | explicit edges |
    | `edge_attr` | `[*B, E, D]` float | explicit edges with features |
    | `topology` | `[*B]` int64 | topology edges |
    | `pos` | `[*B, N, P]` float | `position_dim > 0` |
    | `node_type` | `[*B, N]` int64 | `node_types > 0` |
    | `u` | `[*B, G]` float, features of the whole graph | `graph_features > 0` |

    The content of padding has no effect: features of absent nodes and ends of absent edges may be anything,
    including NaN.

    Args:
        num_nodes: number of node slots N; the mask of a graph marks the nodes that exist.
        node_features: number of node features F.
        edges: source of the edges: `Explicit`, `Radius`, `Nearest` or `Topology`.
        position_dim: numbers per position P; zero for graphs without positions.
        node_types: number of node types; zero for graphs of one type.
        graph_features: number of features of the whole graph G; zero for graphs without.
        step: what changes from step to step beside the graph; set by environments that have `describe`.

    Example:
        >>> spec = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=10))
        >>> spec.zeros(4).shape
        torch.Size([4])
    """

    num_nodes: int
    node_features: int
    edges: EdgeSource = field(default_factory=Explicit)
    position_dim: int = 0
    node_types: int = 0
    graph_features: int = 0
    step: StepSpec | None = None

    def __post_init__(self) -> None:
        for name in ("num_nodes", "node_features", "position_dim", "node_types", "graph_features"):
            least = 1 if name == "num_nodes" else 0
            if not isinstance(getattr(self, name), int) or getattr(self, name) < least:
                raise ValueError(
                    f"GraphSpec.{name} must be an integer of at least {least}, got {getattr(self, name)}"
                )
        kind = type(self.edges).__name__
        if self.edges.needs_positions and self.position_dim == 0:
            raise ValueError(f"{kind} edges are computed from positions: set GraphSpec.position_dim")
        if self.edges.needs_types > self.node_types:
            raise ValueError(
                f"{kind} edges use node type {self.edges.needs_types - 1}: "
                f"GraphSpec.node_types must be at least {self.edges.needs_types}, got {self.node_types}"
            )
        self.edges.check(self.num_nodes)

    @property
    def edge_features(self) -> int:
        """Number of edge features D; zero without."""
        return self.edges.width(self.position_dim)

    def edges_of(self, graph: TensorDict) -> Edges:
        """Return the edges of `graph`: computed, looked up or read, depending on the edge source."""
        return self.edges(graph)

    def composite(
        self, batch_size: tuple[int, ...] = (), device: torch.device | str | None = None
    ) -> Composite:
        """Return the TorchRL spec of graphs of this shape."""
        lead, nodes = tuple(batch_size), self.num_nodes
        entries = {
            "x": Unbounded((*lead, nodes, self.node_features), device=device),
            "node_mask": Binary(shape=(*lead, nodes), dtype=torch.bool, device=device),
            **self.edges.entries(lead, nodes, device),
        }
        if self.position_dim:
            entries["pos"] = Unbounded((*lead, nodes, self.position_dim), device=device)
        if self.node_types:
            entries["node_type"] = Bounded(
                0, self.node_types - 1, shape=(*lead, nodes), dtype=torch.int64, device=device
            )
        if self.graph_features:
            entries["u"] = Unbounded((*lead, self.graph_features), device=device)
        return Composite(entries, shape=lead, device=device)

    def zeros(self, *batch_size: int, device: torch.device | str | None = None) -> TensorDict:
        """Return empty graphs, in which no node and no edge exists."""
        return self.composite(device=device).zero().expand(*batch_size).clone()

    def mask_padding(self, graph: TensorDict) -> Tensor:
        """Return node features with zeros for absent nodes, `[*B, N, F]`."""
        x, mask = graph["x"], unless_all(graph["node_mask"])
        return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)
