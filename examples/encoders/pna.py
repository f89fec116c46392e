"""Principal neighbourhood aggregation: `--model.encoder.kind gnn --model.encoder.conv pna.py:PNA`."""

import torch
from torch_geometric.nn import PNAConv


class PNA(PNAConv):
    """Four aggregations, scaled by the degree of the node in three ways (https://arxiv.org/abs/2004.05718).

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
        edge_dim: number of edge features; None without.
    """

    degrees = (0, 2, 4, 4, 2)
    """How many nodes of the training graphs have degree 0, 1, 2, ...; only its mean counts."""

    def __init__(self, in_channels, out_channels, edge_dim=None):
        aggregators, scalers = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
        degrees = torch.tensor(self.degrees)
        super().__init__(in_channels, out_channels, aggregators, scalers, deg=degrees, edge_dim=edge_dim)
