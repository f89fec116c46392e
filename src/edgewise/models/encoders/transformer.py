"""The default encoder: a graph transformer with edge features."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.edges import Edges, prefers_compact
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.attention import EdgeAttention, Weights
from edgewise.models.encoders.encoder import Block, MessagePassingEncoder, edge_width
from edgewise.models.encoders.graph_batch import DenseBatch, GraphBatch
from edgewise.models.encoders.instance_norm import InstanceNorm
from edgewise.models.native import attention as native


class TransformerBlock(Block):
    """Attention with a residual, then an activation or a feed-forward layer with a residual.

    `config.norm` says where embeddings are normalised: each node before both parts (`layer`), or all nodes of
    a graph after both (`instance`).

    Args:
        config: widths, heads and norm.
        edge_features: D, zero for edges without features.
    """

    def __init__(self, config: EncoderConfig, edge_features: int) -> None:
        super().__init__()
        self.norm_first = config.norm == "layer"
        norm = nn.LayerNorm if self.norm_first else InstanceNorm
        self.norm = norm(config.hidden)
        self.attention = EdgeAttention(config.hidden, config.heads, edge_features=edge_features)
        self.feed_forward = _feed_forward(config) if config.feed_forward else None
        self.feed_forward_norm = norm(config.hidden) if config.feed_forward else None

    def forward(self, h: Tensor, batch: GraphBatch) -> tuple[Tensor, Weights]:
        """Return embeddings after one step of attention over neighbours, and the attention weights."""
        attend = self.attention.dense if isinstance(batch, DenseBatch) else self.attention.sparse
        message, weights = attend(self.norm(h) if self.norm_first else h, batch[0], batch.edge_attr)
        h = h + (functional.silu(message) if self.feed_forward is None else message)
        if not self.norm_first:
            h = self.norm(h, batch)
        if self.feed_forward is None or self.feed_forward_norm is None:
            return h, weights
        if self.norm_first:
            return h + self.feed_forward(self.feed_forward_norm(h)), weights
        return self.feed_forward_norm(h + self.feed_forward(h), batch), weights


class GraphTransformer(MessagePassingEncoder):
    """Node embedding, blocks of attention with edge features and residuals, and by default a final LayerNorm.

    Each node is embedded from its own features and type before aggregation, and attention is a weighted mean.
    So no activation, logit or gradient grows with the degree of a node. In encoders that sum neighbours first
    they do: from 3 to 50 agents, the largest logit grows 125-fold and the gradient 19-fold; here both stay
    within a factor of 1.5 from 3 to 200 agents.

    The same function has two layouts. *Sparse* works on the union of all graphs, *dense* on matrices of all
    pairs, which is faster for graphs with many neighbours per node: from `dense_from` on, as measured by
    benchmarks/encoders.py. `dense="auto"` counts the edges of a rule (`Radius`, `Nearest`) and uses the
    faster layout. The sparse layout is compiled where it can be (`models/native`). Where shapes must not
    depend on data, on a GPU or in a compiled or exported model, nothing is counted: a rule that gives all
    pairs runs dense, any other sparse. `"always"` converts any edges to matrices, for explicit graphs with
    many neighbours; parallel edges, which matrices cannot hold, are an error.

    Args:
        graph: the graph's shape and edge source.
        config: see `EncoderConfig`; `kind` is ignored.

    Example:
        >>> from edgewise.graphs.edges import Explicit
        >>> spec = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=10))
        >>> GraphTransformer(spec)(spec.zeros(4, 2)).shape
        torch.Size([4, 2, 6, 64])
    """

    has_dense_layout = True

    def __init__(self, graph: GraphSpec, config: EncoderConfig | None = None) -> None:
        config = config or EncoderConfig()
        wide = edge_width(graph, config)
        blocks = [TransformerBlock(config, wide) for _ in range(config.layers)]
        super().__init__(graph, config, blocks)

    def takes_dense(self, edges: Edges, node_mask: Tensor) -> bool:
        """Return whether to use the dense layout, see the class."""
        config = self.config
        if config.part_size is not None:
            return False
        if config.dense != "auto" or not (edges.complete or edges.simple):
            return config.dense == "always"
        if config.compact is False or not prefers_compact(edges):
            return edges.complete
        slots, nodes = node_mask.numel(), node_mask.shape[-1]
        features = 0 if edges.attr is None else edge_width(self.graph, config)
        if native.takes(self.trunk.embed.mix.weight, None, heads=config.heads):
            least = dense_from_native(nodes, hidden=config.hidden, edge_features=features)
        else:
            least = dense_from(nodes, hidden=config.hidden, heads=config.heads, edge_features=features)
        return int(edges.mask.count_nonzero()) >= least * slots


def dense_from(nodes: int, *, hidden: int, heads: int, edge_features: int) -> float:
    """Return the number of neighbours per node from which the dense layout is faster, forward and backward.

    The cost of an edge in the sparse layout grows with `hidden`; that of a pair in the dense layout with
    `heads` and `edge_features`. The numbers are a fit to graphs of 6 to 53 nodes and widths of 32 and 64
    (benchmarks/encoders.py).
    """
    per_node = max(1.0, 230 / hidden - 1) + 990 / (hidden * nodes)
    with_five_features = per_node + nodes * heads * (0.015 + 0.5 / hidden)
    return with_five_features * (0.25 + 0.15 * edge_features)


def dense_from_native(nodes: int, *, hidden: int, edge_features: int) -> float:
    """Return the same where the sparse layout is compiled: most neighbours of wide models, else none.

    The numbers are a fit to graphs of 6 to 100 nodes and widths of 32, 64 and 128 (benchmarks/encoders.py).
    """
    return nodes * (0.4 + 29 / hidden + 0.06 * edge_features) + max(0, 20 - nodes)


def _feed_forward(config: EncoderConfig) -> nn.Sequential:
    wide = config.feed_forward * config.hidden
    bias = config.norm == "layer"  # an instance norm would take it away
    return nn.Sequential(nn.Linear(config.hidden, wide), nn.SiLU(), nn.Linear(wide, config.hidden, bias=bias))
