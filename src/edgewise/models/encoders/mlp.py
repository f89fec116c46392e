"""A baseline encoder without message passing: an MLP on all node features at once."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from edgewise.graphs.masks import unless_all
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.encoder import GraphEncoder


class MLP(GraphEncoder):
    """An MLP on the concatenated features of all node slots.

    It ignores edges, is not permutation-equivariant, and works for one padded graph size only. It is a
    baseline for graph networks. Padding enters as zeros, together with the node mask.

    Args:
        graph: fixes N.
        config: `hidden` and `layers`.

    Example:
        >>> from edgewise.graphs.edges import Explicit
        >>> spec = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=10))
        >>> MLP(spec)(spec.zeros(4)).shape
        torch.Size([4, 6, 64])
    """

    any_size = False

    def __init__(self, graph: GraphSpec, config: EncoderConfig | None = None) -> None:
        super().__init__(graph, config or EncoderConfig(kind="mlp"))
        width = self.config.hidden
        inputs = graph.num_nodes * (graph.node_features + 1 + graph.node_types + graph.position_dim)
        inputs += graph.graph_features
        layers: list[nn.Module] = []
        for number in range(self.config.layers):
            layers += [nn.Linear(width if number else inputs, width), nn.LayerNorm(width), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(width, graph.num_nodes * width))

    def forward(self, graph: TensorDict) -> Tensor:
        """Return node embeddings `[*B, N, hidden]`; zero for padding."""
        mask = graph["node_mask"]
        if mask.shape[-1] != self.graph.num_nodes:
            raise ValueError(
                f"the MLP was built for {self.graph.num_nodes} node slots and got {mask.shape[-1]}: "
                "pad to that size, or use the transformer or gnn encoder, which take any size"
            )
        flat = self._rows(graph).flatten(-2)
        if self.graph.graph_features:
            flat = torch.cat((flat, graph["u"]), -1)
        h = self.network(flat).unflatten(-1, (-1, self.hidden))
        return h if unless_all(mask) is None else h.masked_fill(~mask.unsqueeze(-1), 0.0)

    def _rows(self, graph: TensorDict) -> Tensor:
        """Concatenate features, mask, type and position of each slot, `[*B, N, F + 1 + types + P]`."""
        mask = graph["node_mask"].unsqueeze(-1)
        parts = [self.graph.mask_padding(graph), mask.to(graph["x"].dtype)]
        if self.graph.node_types:
            types = nn.functional.one_hot(
                graph["node_type"].masked_fill(~mask[..., 0], 0), self.graph.node_types
            )
            parts.append(types.masked_fill(~mask, 0).to(graph["x"].dtype))
        if self.graph.position_dim:
            parts.append(graph["pos"].masked_fill(~mask, 0.0))
        return torch.cat(parts, -1)
