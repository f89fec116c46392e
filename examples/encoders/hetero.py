"""Own weights for each type of edge: `--model.encoder.kind gnn --model.encoder.conv hetero.py:Hetero`."""

from torch_geometric.nn import GraphConv, HeteroConv, MessagePassing


class Hetero(MessagePassing):
    """HeteroConv over the edge types of `HeteroData`, whose one-hot columns are the edge features.

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
        edge_dim: number of edge types.
    """

    def __init__(self, in_channels, out_channels, edge_dim):
        super().__init__()
        self.types = [("node", str(number), "node") for number in range(edge_dim)]
        self.conv = HeteroConv({key: GraphConv(in_channels, out_channels) for key in self.types})

    def forward(self, x, edge_index, edge_attr):
        """Return the new embeddings `[M, out_channels]`: an edge has weight 1 in its own type, else 0."""
        weights = dict(zip(self.types, edge_attr.unbind(-1), strict=True))
        ends = dict.fromkeys(self.types, edge_index)
        return self.conv({"node": x}, ends, edge_weight_dict=weights)["node"]
