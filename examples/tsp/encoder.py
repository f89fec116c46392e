"""An encoder of one's own: `edgewise train tsp.py --model.encoder.kind encoder.py:DeepSets`."""

import torch
from torch import nn

import edgewise as ew


class DeepSets(ew.GraphEncoder):
    """Embeds each node from its own features and the mean over all nodes (https://arxiv.org/abs/1703.06114)."""

    def __init__(self, graph, config):
        super().__init__(graph, config)
        width = graph.node_features + graph.position_dim
        self.first = nn.Linear(width, self.hidden)
        self.layers = nn.ModuleList(nn.Linear(2 * self.hidden, self.hidden) for _ in range(config.layers))
        self.norm = nn.LayerNorm(self.hidden)

    def forward(self, graph):
        """Return node embeddings `[*B, N, C]`; zero for padding."""
        exists = graph["node_mask"].unsqueeze(-1)
        parts = [graph["x"], graph["pos"]] if self.graph.position_dim else [graph["x"]]
        h = torch.relu(self.first(torch.cat(parts, -1).masked_fill(~exists, 0.0)))
        for layer in self.layers:
            mean = (h * exists).sum(-2, keepdim=True) / exists.sum(-2, keepdim=True).clamp(min=1)
            h = h + torch.relu(layer(torch.cat((h, mean.expand_as(h)), -1)))
        return self.norm(h) * exists

    def diagnostics(self, graph):
        """Return the root mean square of the embeddings, 0-d."""
        return {"output/rms": self(graph).square().mean().sqrt()}
