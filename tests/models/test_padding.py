"""What graphs have in their padding, and which graphs share a batch, changes no embedding."""

import pytest
import torch
from tests.models.worlds import NODES, TYPES, explicit_spec, radius_spec, random_graph
from torch import nn

from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.gnn import GNN, conv_class, make_conv
from edgewise.models.encoders.graph_batch import to_dense_batch
from edgewise.models.encoders.transformer import GraphTransformer


@pytest.mark.parametrize("options", [{"dense": "always"}, {"compact": True}, {"compact": False}], ids=str)
def test_types_of_absent_nodes_may_be_anything(options):
    spec = explicit_spec()
    graph = random_graph(spec, 8)
    absent = ~graph["node_mask"]
    assert absent.any()
    encoder = GraphTransformer(spec, EncoderConfig(hidden=16, **options))
    before = encoder(graph)
    graph["node_type"] = graph["node_type"].masked_fill(absent, TYPES + 90)
    assert torch.equal(encoder(graph), before)


def test_pairs_without_an_edge_have_no_features():
    """Positions of absent nodes are NaN here, and so are their distances, even times a weight of zero."""
    spec = radius_spec()
    graph = random_graph(spec, 8)
    edges = spec.edges_of(graph)
    batch = to_dense_batch(graph, edges)
    assert edges.complete
    assert not batch.linked.all()
    assert (batch.edge_attr[:, ~batch.linked] == 0).all()
    source, target = 0, 1
    world = int(batch.linked[:, target, source].nonzero()[0])
    expected = edges.attr[world].unflatten(0, (NODES, NODES))[source, target]
    assert torch.equal(batch.edge_attr[:, world, target, source], expected)


def test_the_network_of_gen_knows_one_node_at_a_time():
    """PyG's has a BatchNorm, by which other graphs and padding would matter; its place has a LayerNorm."""
    spec = explicit_spec()
    graph = random_graph(spec, 6)
    encoder = GNN(spec, EncoderConfig(kind="gnn", conv="GENConv", hidden=16, layers=2)).train()
    torch.testing.assert_close(encoder(graph)[:2], encoder(graph[:2]), rtol=0, atol=1e-5)
    network = encoder.trunk.blocks[0].conv.mlp
    for layer in network:
        if isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
    h = torch.randn(5, 16)
    torch.testing.assert_close(network(1000 * h), network(h), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["GATv2Conv", "GATConv"])
def test_a_node_without_edges_hears_nothing_from_a_convolution(name):
    """Not even from itself: PyG's would add a loop to every node."""
    config = EncoderConfig(kind="gnn", conv=name, hidden=16, heads=2)
    conv = make_conv(conv_class(name), explicit_spec(edge_features=0), config)
    found = conv(torch.randn(5, 16), torch.zeros(2, 0, dtype=torch.int64))
    assert (found == found[0]).all()


class Normalised(nn.Module):
    """A convolution of somebody else that would normalise over the batch by default."""

    def __init__(self, in_channels, out_channels, norm="batch"):
        super().__init__()
        self.norm = norm


def test_a_convolution_is_asked_for_no_norm_of_its_own():
    """By which other graphs and padding would matter."""
    assert make_conv(Normalised, explicit_spec(), EncoderConfig(kind="gnn")).norm is None
