"""The encoder to start from: attention between entities that were each embedded by themselves."""

from __future__ import annotations

import warnings

from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.edges import Edges
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.attention import EdgeAttention, Weights
from edgewise.models.encoders.encoder import Block, MessagePassingEncoder
from edgewise.models.encoders.norm import make_norm
from edgewise.models.encoders.views import Dense, View


class TransformerBlock(Block):
    """Pre-norm attention with a residual, then an activation or a feed-forward part with its own residual.

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

    def forward(self, h: Tensor, view: View) -> tuple[Tensor, Weights]:
        """`h` with one more hop of what its neighbours say."""
        z = self.norm(h, view)
        attend = self.attention.dense if isinstance(view, Dense) else self.attention.sparse
        message, weights = attend(z, view[0], view.edge_attr)
        if self.feed_forward is None or self.feed_forward_norm is None:
            return h + functional.silu(message), weights
        h = h + message
        return h + self.feed_forward(self.feed_forward_norm(h, view)), weights


class GraphTransformer(MessagePassingEncoder):
    """Node-wise embedding, pre-LayerNorm attention blocks with edge features and residuals, a last LayerNorm.

    Each node is embedded from its own features and type before anything is summed over neighbours, and
    attention is a weighted mean, so no activation, logit or gradient depends on how many neighbours a node
    has. Encoders that sum neighbours first grow with the degree, and their logits with its square: from 3 to
    50 agents their largest logit grows 125-fold and the gradient 19-fold; here both stay within 1.5 from 3 to
    200.

    The same function runs in two layouts. *Sparse* works on the flat union of all graphs; *dense* on matrices
    of all pairs, which pays from about `4 + N / 20` neighbours per node (benchmarks/encoders.py).
    `dense="auto"` takes the dense one exactly where the edge source lays its edges out as all pairs
    (`Radius`, and `Nearest` unless told otherwise), which is known without looking at the data. `"never"` is
    for such rules where neighbours are few among many nodes. `"always"` scatters any edges into matrices, for
    explicit graphs with many neighbours; they must be simple: of several edges with the same ends one is
    kept.

    What the options do, as measured on swarms of 3 to 50 agents:

    - `dropout` acts on attention weights. Rollouts run without it and updates with it, so PPO's ratio is not
      1 at identical weights: at 0.1, between 4 % (3 agents) and 29 % (20 agents) of samples are clipped
      before anything was learnt. Building with `dropout > 0` warns.
    - `beta` gates between message and root. Blocks then add less (activations after 12 layers 1.3 instead of
      2.3) and gradients are a third smaller; against growth with degree it does nothing.
    - `norm="graph"` ties all nodes of a graph together: a node with no path to an agent changes its output.
      Without residuals it raised gradients 2 to 26 times; in these blocks it does not. It is here to be
      compared with.
    - `soft_cap` bounds logits and keeps their gradient. At initialisation logits are below 2 and a cap of 10
      changes nothing.

    Args:
        graph: the graph's shape and edge source.
        config: kind is ignored, the rest as `EncoderConfig` says.

    Example:
        >>> from edgewise.graphs.edges import Explicit
        >>> spec = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=10))
        >>> GraphTransformer(spec)(spec.zeros(4, 2)).shape
        torch.Size([4, 2, 6, 64])
    """

    def __init__(self, graph: GraphSpec, config: EncoderConfig | None = None) -> None:
        config = config or EncoderConfig()
        if config.dropout > 0:
            warnings.warn(
                f"dropout={config.dropout} in an actor makes PPO's ratio differ from 1 at identical weights: "
                "rollouts run without it, updates with it; use 0 unless training is on fixed targets",
                stacklevel=2,
            )
        blocks = [TransformerBlock(config, graph.edge_features) for _ in range(config.layers)]
        super().__init__(graph, config, blocks)

    def takes_dense(self, edges: Edges) -> bool:
        """By the rule above."""
        return self.config.dense == "always" or (self.config.dense == "auto" and edges.complete)


def _feed_forward(config: EncoderConfig) -> nn.Sequential:
    wide = config.feed_forward * config.hidden
    return nn.Sequential(nn.Linear(config.hidden, wide), nn.SiLU(), nn.Linear(wide, config.hidden))
