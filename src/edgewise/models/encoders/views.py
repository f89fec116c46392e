"""The two layouts in which a trunk sees many graphs: one flat union, or one matrix of pairs per graph."""

from __future__ import annotations

from typing import NamedTuple

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn import functional

from edgewise.graphs.bridge import Union, union
from edgewise.graphs.dense import dense_edges
from edgewise.graphs.edges import Edges
from edgewise.graphs.spec import GraphSpec
from edgewise.models.encoders.attention import no_edge


class Sparse(NamedTuple):
    """Many graphs as one union of M nodes and L edges.

    Attributes:
        edge_index: `[2, L]`, row 0 sends to row 1.
        edge_attr: `[L, D]` or None.
        batch: `[M]`, the graph of each node.
        num_graphs: the size of `batch`'s range, the sink's graph counted.
        real: `[M]` bool, false for padding and the sink; None where every node is real.
    """

    edge_index: Tensor
    edge_attr: Tensor | None
    batch: Tensor
    num_graphs: int
    real: Tensor | None


class Dense(NamedTuple):
    """G graphs of N slots each, with all pairs, target first.

    Attributes:
        bias: `[G, N, N]`, zero where the row's node hears the column's, else `no_edge`.
        edge_attr: `[D, G, N, N]`, one plane per feature, zero where there is no edge, or None.
        real: `[G, N]` bool.
    """

    bias: Tensor
    edge_attr: Tensor | None
    real: Tensor

    @property
    def linked(self) -> Tensor:
        """Who (row) hears whom (column), `[G, N, N]` bool."""
        return self.bias == 0


View = Sparse | Dense


def sparse_view(
    graph: TensorDict, spec: GraphSpec, edges: Edges, *, compact: bool | None
) -> tuple[Union, Sparse]:
    """The union of all graphs in `graph`, and the trunk's view of it; `compact` as `union` takes it."""
    flat = union(graph, spec, compact=compact, edges=edges)
    real = functional.pad(graph["node_mask"].reshape(-1), (0, 1)) if flat.kept is None else None
    return flat, Sparse(flat.edge_index, flat.edge_attr, flat.batch, flat.batch_size, real)


def dense_view(graph: TensorDict, edges: Edges) -> Dense:
    """Matrices of all pairs. Of several edges with the same ends only one survives: give simple graphs."""
    nodes = graph["node_mask"].shape[-1]
    real = graph["node_mask"].reshape(-1, nodes)
    matrices = dense_edges(edges, nodes)
    linked = matrices.mask.transpose(-1, -2).reshape(-1, nodes, nodes)
    bias = torch.zeros(linked.shape, dtype=graph["x"].dtype, device=linked.device)
    bias = bias.masked_fill(~linked, no_edge(bias.dtype))
    if matrices.attr is None:
        return Dense(bias, None, real)
    features = matrices.attr.shape[-1]
    planes = matrices.attr.movedim(-1, 0).transpose(-1, -2).reshape(features, *linked.shape)
    return Dense(bias, planes.masked_fill(~linked, 0.0), real)
