"""Two layouts of many graphs for message passing: one sparse union, or one matrix of pairs per graph."""

from __future__ import annotations

from typing import NamedTuple

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn import functional

from edgewise.graphs.dense import dense_edges, parallel_edges
from edgewise.graphs.edges import Edges, may_branch_on
from edgewise.graphs.spec import GraphSpec
from edgewise.models.bridge import Union, union
from edgewise.models.encoders.attention import no_edge


class SparseBatch(NamedTuple):
    """Many graphs as one disjoint union of M nodes and L edges, as in PyG.

    Attributes:
        edge_index: `[2, L]`, from row 0 (source) to row 1 (target).
        edge_attr: `[L, D]` or None.
        batch: `[M]`, the graph of each node.
        num_graphs: number of graphs, including the graph of padding.
        real: `[M]` bool, false for padding; None if there is no padding.
    """

    edge_index: Tensor
    edge_attr: Tensor | None
    batch: Tensor
    num_graphs: int
    real: Tensor | None


class DenseBatch(NamedTuple):
    """G graphs of N node slots each, with all pairs of nodes, target first.

    Attributes:
        bias: `[G, N, N]`, zero where the column sends to the row, else `no_edge`.
        edge_attr: `[D, G, N, N]`, one matrix per feature, zero where there is no edge, or None.
        real: `[G, N]` bool, false for padding; None if there is no padding, which is only found on a CPU.
    """

    bias: Tensor
    edge_attr: Tensor | None
    real: Tensor | None

    @property
    def linked(self) -> Tensor:
        """The adjacency matrix, true where the column sends to the row, `[G, N, N]` bool."""
        return self.bias == 0


GraphBatch = SparseBatch | DenseBatch


def to_sparse_batch(
    graph: TensorDict, spec: GraphSpec, edges: Edges, *, compact: bool | None
) -> tuple[Union, SparseBatch]:
    """Return the union of all graphs and its sparse batch; for `compact` see `union`."""
    flat = union(graph, spec, compact=compact, edges=edges)
    real = functional.pad(graph["node_mask"].reshape(-1), (0, 1)) if flat.kept is None else None
    return flat, SparseBatch(flat.edge_index, flat.edge_attr, flat.batch, flat.batch_size, real)


def to_dense_batch(graph: TensorDict, edges: Edges) -> DenseBatch:
    """Return matrices of all pairs, which cannot hold parallel edges, with the same source and target.

    They are looked for on a CPU; on another device and in compiled code only one of them is kept.

    Raises:
        ValueError: a graph has parallel edges.
    """
    nodes = graph["node_mask"].shape[-1]
    may_be_parallel = not (edges.complete or edges.simple)
    if may_be_parallel and edges.mask.device.type == "cpu" and not torch.compiler.is_compiling():
        _refuse_parallel(edges, nodes)
    mask = graph["node_mask"].reshape(-1, nodes)
    real = None if may_branch_on(mask) and mask.all() else mask
    matrices = dense_edges(edges, nodes)
    linked = matrices.mask.transpose(-1, -2).reshape(-1, nodes, nodes)
    bias = torch.zeros(linked.shape, dtype=graph["x"].dtype, device=linked.device)
    bias = bias.masked_fill(~linked, no_edge(bias.dtype))
    if matrices.attr is None:
        return DenseBatch(bias, None, real)
    features = matrices.attr.shape[-1]
    planes = matrices.attr.movedim(-1, 0).transpose(-1, -2).reshape(features, *linked.shape)
    return DenseBatch(bias, planes.masked_fill(~linked, 0.0), real)


def _refuse_parallel(edges: Edges, num_nodes: int) -> None:
    found = parallel_edges(edges, num_nodes)
    if found.any():
        world = found.nonzero()[0].tolist()
        raise ValueError(
            f"graph{world} has two edges with the same source and target, which matrices cannot hold: "
            "set `dense` of the encoder to auto or never"
        )
