"""The flat baseline: all nodes in one vector, for one graph size, blind to edges."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.encoder import GraphEncoder


class MLP(GraphEncoder):
    """All slots concatenated, through a plain network, and back to one row per slot.

    It sees no edges, is not equivariant to the order of nodes, and its size is that of the padded graph: it
    is what a graph network must beat. Absent nodes enter as zeros with their mask.

    Args:
        graph: fixes N.
        config: `hidden` and `layers`.
    """

    def __init__(self, graph: GraphSpec, config: EncoderConfig | None = None) -> None:
        super().__init__(graph, config or EncoderConfig(kind="mlp"))
        width = self.config.hidden
        inputs = graph.num_nodes * (graph.node_features + 1 + graph.node_types + graph.position_dim)
        layers: list[nn.Module] = []
        for number in range(self.config.layers):
            layers += [nn.Linear(width if number else inputs, width), nn.LayerNorm(width), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(width, graph.num_nodes * width))

    def forward(self, graph: TensorDict) -> Tensor:
        """`[*B, N, hidden]`; zero for absent nodes."""
        mask = graph["node_mask"]
        if mask.shape[-1] != self.graph.num_nodes:
            raise ValueError(
                f"the MLP was built for {self.graph.num_nodes} node slots and got {mask.shape[-1]}: "
                "pad to that size, or use the transformer or gnn encoder, which take any size"
            )
        h = self.network(self._rows(graph).flatten(-2)).unflatten(-1, (-1, self.hidden))
        return h.masked_fill(~mask.unsqueeze(-1), 0.0)

    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Root mean square of the outputs of existing nodes, a 0-d tensor."""
        with torch.no_grad():
            count = graph["node_mask"].sum().clamp(min=1) * self.hidden
            return {"output/rms": (self(graph).square().sum() / count).sqrt()}

    def _rows(self, graph: TensorDict) -> Tensor:
        """What is known of each slot, `[*B, N, F + 1 + types + P]`."""
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
