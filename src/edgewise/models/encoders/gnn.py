"""An encoder with any PyG convolution, in the same blocks as the graph transformer."""

from __future__ import annotations

import inspect
from typing import Any, get_args

from torch import Tensor, nn
from torch.nn import functional
from torch_geometric import nn as geometric

from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import Conv, EncoderConfig
from edgewise.models.encoders.encoder import Block, MessagePassingEncoder, edge_width
from edgewise.models.encoders.graph_batch import GraphBatch, SparseBatch
from edgewise.plugins import find


class ConvBlock(Block):
    """Pre-norm convolution with an activation and a residual.

    Args:
        conv: the convolution.
        config: its width.
        edge_features: whether the convolution takes `edge_attr`.
    """

    def __init__(self, conv: nn.Module, config: EncoderConfig, *, edge_features: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.conv = conv
        self.edge_features = edge_features

    def forward(self, h: Tensor, batch: GraphBatch) -> tuple[Tensor, None]:
        """Return embeddings after one convolution; attention weights are not available."""
        assert isinstance(batch, SparseBatch)
        z = self.norm(h)
        if self.edge_features:
            attr = z.new_zeros(batch.edge_index.shape[1], 1) if batch.edge_attr is None else batch.edge_attr
            message = self.conv(z, batch.edge_index, edge_attr=attr)
        else:
            message = self.conv(z, batch.edge_index)
        return h + functional.silu(message), None


class GNN(MessagePassingEncoder):
    """Node embedding, pre-norm blocks of a PyG convolution with residuals, and a final LayerNorm.

    Convolutions with `edge_dim` (GATv2, GAT, Transformer, GINE, GEN) use edge features; others ignore them.
    Two defaults of PyG are changed because they do not work in batches of padded graphs. Convolutions do not
    add self loops, which would make shapes depend on data; the residual replaces them. The BatchNorm inside
    GEN is replaced by a LayerNorm, since batch statistics leak between graphs and from padding.

    Args:
        graph: the graph's shape and edge source.
        config: `conv` is the name or address of the convolution.
        conv: the class of the convolution, instead of a name. Its first two arguments are the widths of input
            and output, or it takes a network as `nn`. `heads`, `edge_dim` and `add_self_loops` are set if it
            has them.

    Example:
        >>> from torch_geometric.nn import SAGEConv
        >>> from edgewise.graphs.edges import Explicit
        >>> spec = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=10))
        >>> GNN(spec, conv=SAGEConv)(spec.zeros(4)).shape
        torch.Size([4, 6, 64])
    """

    def __init__(
        self, graph: GraphSpec, config: EncoderConfig | None = None, *, conv: type[nn.Module] | None = None
    ) -> None:
        config = config or EncoderConfig(kind="gnn")
        kind = conv or conv_class(config.conv)
        takes_edges = bool(_edge_dim(kind, graph, config)) and "edge_dim" in _arguments(kind)
        blocks = [
            ConvBlock(make_conv(kind, graph, config), config, edge_features=takes_edges)
            for _ in range(config.layers)
        ]
        super().__init__(graph, config, blocks)


def conv_class(reference: str) -> type[nn.Module]:
    """Return the class of a convolution: one of PyG by its name, an own one by its name or address.

    Raises:
        ConfigError: it does not exist, or may not be imported.
    """
    found: type[nn.Module] = (
        getattr(geometric, reference) if reference in get_args(Conv) else find("convolution", reference)
    )
    return found


def make_conv(kind: type[nn.Module], graph: GraphSpec, config: EncoderConfig) -> nn.Module:
    """Build a convolution from `hidden` to `hidden` channels that works in batches of padded graphs."""
    accepted, width = _arguments(kind), config.hidden
    options: dict[str, Any] = {"add_self_loops": False, "norm": None}
    if wide := _edge_dim(kind, graph, config):
        options["edge_dim"] = wide
    options = {name: value for name, value in options.items() if name in accepted}
    if "nn" in accepted:
        network = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        return kind(network, **options)
    if "heads" in accepted and "concat" in accepted:
        if width % config.heads:
            raise ValueError(
                f"hidden={width} is not a multiple of heads={config.heads}, which {kind.__name__} needs"
            )
        return kind(width, width // config.heads, heads=config.heads, **options)
    conv = kind(width, width, **options)
    if isinstance(conv, geometric.GENConv):
        conv.mlp = _node_wise_mlp(width)
    return conv


def _edge_dim(kind: type[nn.Module], graph: GraphSpec, config: EncoderConfig) -> int:
    """Return the width of edge features; for GINE, which needs some, 1 (zeros) if the graph has none."""
    return edge_width(graph, config) or int(issubclass(kind, geometric.GINEConv))


def _node_wise_mlp(width: int) -> nn.Module:
    """Build the update network of GEN with a LayerNorm instead of a BatchNorm."""
    return nn.Sequential(
        nn.Linear(width, 2 * width), nn.LayerNorm(2 * width), nn.ReLU(), nn.Linear(2 * width, width)
    )


def _arguments(kind: type[nn.Module]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.__init__).parameters)
