"""The bridge: padded graphs of any leading shape ⇄ one disjoint union, by tensor arithmetic alone.

Two ways give the same answer. *Static*: every node slot is kept and one sink node is added; absent edges run from the
sink to itself, so shapes depend on the padded sizes only and the path compiles, exports and even vmaps. *Compact*:
absent nodes and edges are dropped with a boolean index, which is less work where padding is heavy.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import Edges
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class Union:
    """Many graphs as one: what a PyG convolution takes, and the way back.

    Attributes:
        x: `[M, F]`.
        edge_index: `[2, L]` int64.
        edge_attr: `[L, D]` or None.
        node_type: `[M]` int64 or None.
        pos: `[M, P]` or None.
        batch: `[M]` int64, the graph each node belongs to; the sink belongs to graph `num_graphs`.
        kept: None where all slots are kept (static), else `[B * N]` bool, which slots the M nodes are.
        node_mask: `[*B, N]` bool.
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    node_type: Tensor | None
    pos: Tensor | None
    batch: Tensor
    kept: Tensor | None
    node_mask: Tensor

    @property
    def num_graphs(self) -> int:
        """How many graphs the union holds, the sink's not counted."""
        return self.node_mask.shape[:-1].numel()

    def nodes(self, h: Tensor) -> Tensor:
        """Node values `[M, C]` back in their slots `[*B, N, C]`; absent nodes are zero."""
        slots = self.node_mask.numel()
        if self.kept is None:
            flat = h[:slots].masked_fill(~self.node_mask.reshape(-1, 1), 0.0)
        else:
            flat = h.new_zeros(slots, h.shape[-1]).masked_scatter(self.kept.unsqueeze(-1), h)
        return flat.view(*self.node_mask.shape, h.shape[-1])


def union(graph: TensorDict, spec: GraphSpec, *, compact: bool = False, edges: Edges | None = None) -> Union:
    """One disjoint union of all graphs in `graph`, whatever its leading dimensions.

    Args:
        graph: a padded graph as `spec` describes it, batch size `[*B]`, none included.
        spec: the graph's shape and edge source.
        compact: drop absent nodes and edges (data-dependent shapes) instead of sending them to a sink.
        edges: edges computed before, to save computing them again.
    """
    edges = spec.edges_of(graph) if edges is None else edges
    return (_compact if compact else _static)(graph, spec, edges)


def _offsets(index: Tensor, num_nodes: int) -> Tensor:
    """Edge ends `[*B, 2, E]` as indices into the stacked nodes, `[2, B * E]`."""
    graphs = index.shape[:-2].numel()
    flat = index.reshape(graphs, 2, -1)
    start = torch.arange(graphs, device=index.device).view(-1, 1, 1) * num_nodes
    return (flat + start).transpose(0, 1).reshape(2, -1)


def _static(graph: TensorDict, spec: GraphSpec, edges: Edges) -> Union:
    mask = graph["node_mask"]
    slots, sink_row = mask.numel(), (0, 0, 0, 1)
    x = torch.nn.functional.pad(spec.mask_padding(graph).reshape(slots, -1), sink_row)
    index = torch.where(edges.mask.reshape(1, -1), _offsets(edges.index, mask.shape[-1]), slots)
    attr = edges.attr
    if attr is not None:
        attr = attr.masked_fill(~edges.mask.unsqueeze(-1), 0.0).reshape(-1, attr.shape[-1])
    node_type = pos = None
    if spec.node_types:
        node_type = torch.nn.functional.pad(graph["node_type"].masked_fill(~mask, 0).reshape(slots), (0, 1))
    if spec.position_dim:
        pos = graph["pos"].masked_fill(~mask.unsqueeze(-1), 0.0).reshape(slots, -1)
        pos = torch.nn.functional.pad(pos, sink_row)
    batch = torch.arange(slots + 1, device=x.device) // mask.shape[-1]
    return Union(x, index, attr, node_type, pos, batch, None, mask)


def _compact(graph: TensorDict, spec: GraphSpec, edges: Edges) -> Union:
    mask = graph["node_mask"]
    num_nodes = mask.shape[-1]
    kept, edge_kept = mask.reshape(-1), edges.mask.reshape(-1)
    row = kept.cumsum(0) - 1
    index = row[_offsets(edges.index, num_nodes)[:, edge_kept]]
    attr = None if edges.attr is None else edges.attr.reshape(-1, edges.attr.shape[-1])[edge_kept]
    x = graph["x"].reshape(kept.shape[0], -1)[kept]
    node_type = graph["node_type"].reshape(-1)[kept] if spec.node_types else None
    pos = graph["pos"].reshape(kept.shape[0], -1)[kept] if spec.position_dim else None
    batch = torch.arange(kept.shape[0], device=x.device)[kept] // num_nodes
    return Union(x, index, attr, node_type, pos, batch, kept, mask)
