"""The bridge: convert padded graphs of any batch shape to one disjoint union for PyG, and back.

Two forms give the same results. *Static*: every node slot is kept and a sink node is added; absent edges run
from the sink to itself. Shapes depend only on the padded sizes, so this form compiles, exports and vmaps.
*Compact*: absent nodes and edges are dropped, which is faster for graphs with much padding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn.functional import pad

from edgewise.graphs.edges import Edges, prefers_compact
from edgewise.graphs.masks import unless_all
from edgewise.graphs.spec import GraphSpec

Pool = Literal["mean", "sum", "max"]


@dataclass(frozen=True)
class Union:
    """Many graphs as one disjoint union, in the form that PyG convolutions take.

    Attributes:
        x: `[M, F]`.
        edge_index: `[2, L]` int64.
        edge_attr: `[L, D]` or None.
        node_type: `[M]` int64 or None.
        pos: `[M, P]` or None.
        u: `[num_graphs + 1, G]` or None, features of each graph; `u[batch]` are those of each node's graph,
            and zero for the sink and absent nodes.
        batch: `[M]` int64, the graph of each node. The sink and absent nodes belong to graph `num_graphs`, so
            that norms and pools over `batch` exclude padding. Not sorted if absent nodes are kept.
        kept: `[M]` int64, the slots of the nodes in ascending order; None if all slots and a sink are nodes.
        node_mask: `[*B, N]` bool.
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    node_type: Tensor | None
    pos: Tensor | None
    u: Tensor | None
    batch: Tensor
    kept: Tensor | None
    node_mask: Tensor

    @property
    def num_graphs(self) -> int:
        """Number of graphs in the union, without that of the sink."""
        return math.prod(self.node_mask.shape[:-1])

    @property
    def batch_size(self) -> int:
        """One more than the largest index in `batch`: the argument `batch_size` of PyG's norms and pools."""
        return self.num_graphs + 1

    def nodes(self, h: Tensor) -> Tensor:
        """Return node values `[M, C]` in their slots `[*B, N, C]`; absent nodes are zero."""
        slots = self.node_mask.numel()
        if self.kept is None:
            flat = h[:slots].masked_fill(~self.node_mask.reshape(slots, 1), 0.0)
        else:
            is_whole = len(self.kept) == slots
            flat = h if is_whole else h.new_zeros(slots, h.shape[-1]).index_copy(0, self.kept, h)
        return flat.reshape(*self.node_mask.shape, h.shape[-1])

    def rows(self, h: Tensor) -> Tensor:
        """Return node values `[*B, N, C]`, also as `[B, N, C]`, as `[M, C]`: the inverse of `nodes`."""
        h = h.reshape(*self.node_mask.shape, h.shape[-1])
        return _with_sink(h, self.node_mask) if self.kept is None else _rows(h, self.kept)

    def pool(self, h: Tensor, how: Pool = "mean") -> Tensor:
        """Pool node values `[M, C]` over the existing nodes of each graph, `[*B, C]`; zero if none exists."""
        return pool_nodes(self.nodes(h), self.node_mask, how=how)


def pool_nodes(h: Tensor, node_mask: Tensor, *, how: Pool = "mean") -> Tensor:
    """Compute the mean, sum or maximum over existing nodes, `[*B, C]`; zero if none exists.

    Args:
        h: node values `[*B, N, C]`.
        node_mask: `[*B, N]` bool.
        how: `"mean"`, `"sum"` or `"max"`.
    """
    if unless_all(node_mask) is None and how in ("mean", "sum", "max") and h.shape[-2]:
        return h.amax(-2) if how == "max" else h.sum(-2) / (1 if how == "sum" else h.shape[-2])
    absent = ~node_mask.unsqueeze(-1)
    if how == "max":
        return h.masked_fill(absent, -torch.inf).amax(-2).masked_fill(absent.all(-2), 0.0)
    total = h.masked_fill(absent, 0.0).sum(-2)
    if how == "sum":
        return total
    if how == "mean":
        return total / node_mask.sum(-1, keepdim=True).clamp(min=1)
    raise ValueError(f'pool must be "mean", "sum" or "max", got {how!r}')


def union(
    graph: TensorDict, spec: GraphSpec, *, compact: bool | None = None, edges: Edges | None = None
) -> Union:
    """Build the disjoint union of all graphs in `graph`.

    Args:
        graph: padded graphs with any batch size `[*B]`, or a plain dict of their tensors.
        spec: shape and edge source of the graphs.
        compact: drop absent nodes and edges (data-dependent shapes) instead of connecting them to a sink;
            None for `prefers_compact`.
        edges: edges of the graphs, if they are computed already.
    """
    edges = spec.edges_of(graph) if edges is None else edges
    compact = prefers_compact(edges) if compact is None else compact
    return (_compact if compact else _static)(graph, spec, edges)


def _offsets(index: Tensor, num_nodes: int) -> Tensor:
    """Return edge ends `[*B, 2, E]` as indices into the stacked nodes, `[2, B * E]`."""
    graphs, num_edges = math.prod(index.shape[:-2]), index.shape[-1]
    start = torch.arange(graphs, device=index.device).unsqueeze(-1) * num_nodes
    ends = index.reshape(graphs, 2, num_edges).transpose(0, 1) + start
    return ends.reshape(2, graphs * num_edges)


def _static(graph: TensorDict, spec: GraphSpec, edges: Edges) -> Union:
    mask = graph["node_mask"]
    slots, num_nodes = mask.numel(), mask.shape[-1]
    links = edges.mask.numel()
    index = torch.where(edges.mask.reshape(1, links), _offsets(edges.index, num_nodes), slots)
    attr = edges.attr
    if attr is not None:
        attr = attr.masked_fill(~edges.mask.unsqueeze(-1), 0.0).reshape(links, attr.shape[-1])
    graph_of = torch.arange(slots + 1, device=mask.device) // num_nodes
    return Union(
        x=_with_sink(graph["x"], mask),
        edge_index=index,
        edge_attr=attr,
        node_type=_with_sink(graph["node_type"].unsqueeze(-1), mask).squeeze(-1) if spec.node_types else None,
        pos=_with_sink(graph["pos"], mask) if spec.position_dim else None,
        u=_with_sink_graph(graph["u"]) if spec.graph_features else None,
        batch=torch.where(pad(mask.reshape(slots), (0, 1)), graph_of, graph_of[-1]),
        kept=None,
        node_mask=mask,
    )


def _with_sink(values: Tensor, mask: Tensor) -> Tensor:
    """Return node values `[*B, N, C]` as `[B * N + 1, C]`; absent nodes and the sink, last, are zero."""
    flat = values.masked_fill(~mask.unsqueeze(-1), 0).reshape(mask.numel(), values.shape[-1])
    return pad(flat, (0, 0, 0, 1))


def _with_sink_graph(u: Tensor) -> Tensor:
    """Return graph features `[*B, G]` as `[B + 1, G]`; those of the graph of the sink, last, are zero."""
    return pad(u.reshape(math.prod(u.shape[:-1]), u.shape[-1]), (0, 0, 0, 1))


def _compact(graph: TensorDict, spec: GraphSpec, edges: Edges) -> Union:
    mask = graph["node_mask"]
    slots, links = mask.numel(), edges.mask.numel()
    node = mask.reshape(slots).nonzero().squeeze(-1)
    link = edges.mask.reshape(links).nonzero().squeeze(-1)
    ends = _ends(edges, link, mask.shape[-1])
    types = graph["node_type"].unsqueeze(-1) if spec.node_types else None
    return Union(
        x=_rows(graph["x"], node),
        edge_index=ends if len(node) == slots else (mask.reshape(slots).cumsum(0) - 1)[ends],
        edge_attr=None if edges.attr is None else _rows(edges.attr, link),
        node_type=None if types is None else _rows(types, node).squeeze(-1),
        pos=_rows(graph["pos"], node) if spec.position_dim else None,
        u=_with_sink_graph(graph["u"]) if spec.graph_features else None,
        batch=node // mask.shape[-1],
        kept=node,
        node_mask=mask,
    )


def _rows(values: Tensor, number: Tensor) -> Tensor:
    """Return rows `number [L]` of `values [*B, K, C]` with everything before C flattened, `[L, C]`.

    The numbers are different and ascend, so as many numbers as rows are all rows.
    """
    rows = values.reshape(math.prod(values.shape[:-1]), values.shape[-1])
    return rows if len(number) == len(rows) else rows.index_select(0, number)


def _ends(edges: Edges, link: Tensor, num_nodes: int) -> Tensor:
    """Return the ends of edges in the flat slots `link [L]` as indices into the stacked nodes, `[2, L]`."""
    if not edges.complete:
        ends = _offsets(edges.index, num_nodes)
        return ends if len(link) == ends.shape[1] else ends.index_select(1, link)
    source, target = link // num_nodes, link % num_nodes
    return torch.stack((source, source - source % num_nodes + target))
