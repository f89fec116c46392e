"""Messages beside attention (https://arxiv.org/abs/2205.12454): `--model.encoder.kind gps.py:GPS`."""

from torch import cat, layer_norm, nn
from torch_geometric.nn import GPSConv, SAGEConv

import edgewise as ew


class GPS(ew.GraphEncoder):
    """The parts of GPSConv, in the static shapes that an export needs: attention over padded slots."""

    def __init__(self, graph, config):
        super().__init__(graph, config)
        size, heads = config.hidden, config.heads
        self.embed = nn.Linear(graph.node_features + graph.graph_features, size)
        self.blocks = nn.ModuleList(GPSConv(size, SAGEConv(size, size), heads) for _ in range(config.layers))

    def forward(self, graph):
        flat, absent = ew.union(graph, self.graph), ~graph["node_mask"].flatten(0, -2)
        h = self.embed(flat.x if flat.u is None else cat((flat.x, flat.u[flat.batch]), -1))
        for block in self.blocks:
            z = flat.nodes(h).flatten(0, -3)
            h = h + block.conv(h, flat.edge_index) + flat.rows(block.attn(z, z, z, absent)[0])
            h = layer_norm(h + block.mlp(h), h.shape[-1:])
        return flat.nodes(h)
