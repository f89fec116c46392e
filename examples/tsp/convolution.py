"""A PyG convolution of one's own: `edgewise train tsp.py --kind gnn --conv convolution.py:MaxConv`."""

import torch
from torch import nn
from torch_geometric.nn import MessagePassing


class MaxConv(MessagePassing):
    """Takes the largest message of all neighbours; a message is a layer on both ends and the edge.

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
        edge_dim: number of edge features; None without.
    """

    def __init__(self, in_channels, out_channels, edge_dim=None):
        super().__init__(aggr="max")
        self.layer = nn.Linear(2 * in_channels + (edge_dim or 0), out_channels)

    def forward(self, x, edge_index, edge_attr=None):
        """Return the new embeddings `[M, out_channels]` of nodes `x [M, in_channels]`."""
        return self.propagate(edge_index, x=x, edge_attr=edge_attr)

    def message(self, x_i, x_j, edge_attr):
        """Compute the message of each edge."""
        parts = (x_i, x_j) if edge_attr is None else (x_i, x_j, edge_attr)
        return torch.relu(self.layer(torch.cat(parts, -1)))
