"""The default encoder: a graph transformer with edge features."""

from __future__ import annotations

import warnings

from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.edges import Edges, prefers_compact
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.attention import EdgeAttention, Weights
from edgewise.models.encoders.encoder import Block, MessagePassingEncoder, edge_width
from edgewise.models.encoders.graph_batch import DenseBatch, GraphBatch
from edgewise.models.encoders.norm import make_norm


class TransformerBlock(Block):
    """Pre-norm attention with a residual, then an activation or a feed-forward layer with a residual.

    Args:
        config: widths, heads, norm and options.
        edge_features: D, zero for edges without features.
    """

    def __init__(self, config: EncoderConfig, edge_features: int) -> None:
        super().__init__()
        self.norm = make_norm(config.norm, config.hidden)
        self.attention = EdgeAttention(
            config.hidden,
            config.heads,
            edge_features=edge_features,
            soft_cap=config.soft_cap,
            beta=config.beta,
            dropout=config.dropout,
        )
        self.feed_forward = _feed_forward(config) if config.feed_forward else None
        self.feed_forward_norm = make_norm(config.norm, config.hidden) if config.feed_forward else None

    def forward(self, h: Tensor, batch: GraphBatch) -> tuple[Tensor, Weights]:
        """Return embeddings after one step of attention over neighbours, and the attention weights."""
        z = self.norm(h, batch)
        attend = self.attention.dense if isinstance(batch, DenseBatch) else self.attention.sparse
        message, weights = attend(z, batch[0], batch.edge_attr)
        if self.feed_forward is None or self.feed_forward_norm is None:
            return h + functional.silu(message), weights
        h = h + message
        return h + self.feed_forward(self.feed_forward_norm(h, batch)), weights


class GraphTransformer(MessagePassingEncoder):
    """Node embedding, pre-norm attention blocks with edge features and residuals, and a final LayerNorm.

    Each node is embedded from its own features and type before aggregation, and attention is a weighted mean.
    So no activation, logit or gradient grows with the degree of a node. In encoders that sum neighbours first
    they do: from 3 to 50 agents, the largest logit grows 125-fold and the gradient 19-fold; here both stay
    within a factor of 1.5 from 3 to 200 agents.

    The same function has two layouts. *Sparse* works on the union of all graphs, *dense* on matrices of all
    pairs, which is faster for graphs with many neighbours per node: from `dense_from` on, as measured by
    benchmarks/encoders.py. `dense="auto"` counts the edges of a rule (`Radius`, `Nearest`) and uses the
    faster layout. Where shapes must not depend on data, on a GPU or in a compiled or exported model, nothing
    is counted: a rule that gives all pairs runs dense, any other sparse. `"always"` converts any edges to
    matrices, for explicit graphs with many neighbours; parallel edges, which matrices cannot hold, are an
    error.

    The effects of the options, measured with 3 to 50 agents:

    - `dropout` applies to attention weights. Rollouts run without it and updates with it, so PPO's ratio is
      not 1 at identical weights: at 0.1, between 4 % (3 agents) and 29 % (20 agents) of the samples are
      clipped before the first update. A warning is given if `dropout > 0`.
    - `beta` gates between the message and the root. Activations after 12 layers are 1.3 instead of 2.3, and
      gradients are a third smaller; growth with the degree is unchanged.
    - `norm="graph"` couples all nodes of a graph: a node without a path to an agent changes its output.
      Without residuals it increased gradients 2 to 26 times; in these blocks it does not. It is meant for
      comparisons.
    - `soft_cap` bounds logits and keeps their gradient. Logits at initialisation are below 2, so a cap of 10
      changes nothing.

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
        if config.dropout > 0:
            warnings.warn(
                f"dropout={config.dropout} in an actor makes PPO's ratio differ from 1 at identical weights: "
                "rollouts run without it, updates with it; use 0 unless training is on fixed targets",
                stacklevel=2,
            )
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


def _feed_forward(config: EncoderConfig) -> nn.Sequential:
    wide = config.feed_forward * config.hidden
    return nn.Sequential(nn.Linear(config.hidden, wide), nn.SiLU(), nn.Linear(wide, config.hidden))
