"""The encoder of the max-cut recipe: `--model.encoder.kind encoder.py:CutEncoder`."""

import torch
from torch import nn

import edgewise as ew


class CutEncoder(ew.GraphEncoder):
    """Passes messages by matrices of all pairs, which is fast on small graphs: once signed and once not.

    An edge feature is the weight of the edge, negative if the edge is cut. So the signed sum over neighbours
    shows how their gains change when a node is flipped.
    """

    def __init__(self, graph, config):
        super().__init__(graph, config)
        width = self.hidden
        self.first = nn.Linear(graph.node_features, width)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(config.layers))
        self.others = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, graph):
        """Return node embeddings `[*B, N, C]`; zero for padding."""
        exists = graph["node_mask"].unsqueeze(-1)
        h = self.first(graph["x"].masked_fill(~exists, 0.0)).relu()
        signed, plain = self.matrices(graph)
        for own, others in zip(self.own, self.others, strict=True):
            messages = torch.cat((signed @ h, plain @ h), -1)
            h = h + (own(h) + others(messages)).relu()
        return self.norm(h) * exists

    def matrices(self, graph):
        """Return the signed weights over the root of the degree, and mean weights, `[*B, N, N]` each."""
        edges, nodes = self.graph.edges_of(graph), graph["node_mask"].shape[-1]
        place = edges.index[..., 1, :] * nodes + edges.index[..., 0, :]
        value = edges.attr.squeeze(-1).masked_fill(~edges.mask, 0.0)
        flat = value.new_zeros(*value.shape[:-1], nodes * nodes).scatter_add(-1, place, value)
        signed = flat.unflatten(-1, (nodes, nodes))
        degree = signed.abs().sum(-1, keepdim=True).clamp(min=1.0)
        return signed / degree.sqrt(), signed.abs() / degree

    def diagnostics(self, graph):
        """Return the root mean square of the embeddings, 0-d."""
        return {"output/rms": self(graph).square().mean().sqrt()}


class NodeEncoder(ew.GraphEncoder):
    """Embeds each node from its own features, without messages: a rule of local search, and much faster."""

    def __init__(self, graph, config):
        super().__init__(graph, config)
        self.first = nn.Linear(graph.node_features, self.hidden)

    def forward(self, graph):
        """Return node embeddings `[*B, N, C]`; zero for padding."""
        exists = graph["node_mask"].unsqueeze(-1)
        return self.first(graph["x"].masked_fill(~exists, 0.0)).relu() * exists

    def diagnostics(self, graph):
        """Return the root mean square of the embeddings, 0-d."""
        return {"output/rms": self(graph).square().mean().sqrt()}
