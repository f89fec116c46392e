"""Edge features that pass a layer first: equal in both layouts, not linear, and nothing without features."""

import pytest
import torch
from tests.models.worlds import explicit_spec, radius_spec, random_graph
from torch.nn import functional

from edgewise.models.build import make_encoder
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.encoder import EdgeEmbedding
from edgewise.models.encoders.graph_batch import DenseBatch, SparseBatch, to_dense_batch
from edgewise.models.encoders.transformer import GraphTransformer
from edgewise.models.native import attention


def encoder(spec, **settings):
    torch.manual_seed(0)
    return make_encoder(spec, EncoderConfig(hidden=8, heads=2, layers=2, edge_hidden=5, **settings))


@pytest.mark.parametrize("spec", [explicit_spec(), radius_spec()], ids=["explicit", "radius"])
def test_both_layouts_agree(spec):
    graph = random_graph(spec, 6)
    sparse, dense = (encoder(spec, dense=layout) for layout in ("never", "always"))
    torch.testing.assert_close(sparse(graph), dense(graph), rtol=1e-5, atol=1e-5)
    assert sparse.attention(graph) is None or spec.edges_of(graph).complete
    torch.testing.assert_close(
        sparse.diagnostics(graph)["output/rms"], dense.diagnostics(graph)["output/rms"]
    )


def test_attention_and_diagnostics_are_those_of_embedded_edges():
    spec = radius_spec()
    graph = random_graph(spec, 4)
    module = encoder(spec, dense="always")
    before = module.attention(graph), module.diagnostics(graph)["layer_0/logit_max"]
    module.trunk.embed_edges.linear.weight.data *= 20
    after = module.attention(graph), module.diagnostics(graph)["layer_0/logit_max"]
    assert not torch.allclose(before[0], after[0])
    assert not torch.allclose(before[1], after[1])


def test_pairs_without_an_edge_stay_without_features():
    graph = random_graph(radius_spec(), 8)
    batch = to_dense_batch(graph, radius_spec().edges_of(graph))
    planes = EdgeEmbedding(len(batch.edge_attr), 4)(batch)
    assert planes.shape == (4, *batch.bias.shape)
    assert (planes[:, ~batch.linked] == 0).all()
    assert (planes[:, batch.linked] != 0).any()


def test_it_is_a_layer_with_an_activation():
    layer, attr = EdgeEmbedding(3, 4), torch.randn(7, 3)
    batch = SparseBatch(torch.zeros(2, 7, dtype=torch.int64), attr, torch.zeros(1), 1, None)
    expected = functional.silu(attr @ layer.linear.weight.T + layer.linear.bias)
    torch.testing.assert_close(layer(batch), expected)
    planes = attr.T.reshape(3, 1, 1, 7).expand(3, 1, 7, 7)
    dense = DenseBatch(torch.zeros(1, 7, 7), planes, torch.ones(1, 7, dtype=torch.bool))
    torch.testing.assert_close(layer(dense)[:, 0, 0], expected.T)


@pytest.mark.parametrize("kind", ["transformer", "gnn"])
def test_edges_without_features_have_no_layer(kind):
    spec = explicit_spec(edge_features=0)
    module = encoder(spec, kind=kind)
    assert module.trunk.embed_edges is None
    assert module(random_graph(spec, 3)).isfinite().all()


@pytest.mark.parametrize(("native", "hidden"), [(False, 32), (True, 512)])
def test_dense_layouts_are_chosen_by_the_embedded_width(native, hidden, monkeypatch):
    """Matrices of many features cost more, so they need more neighbours to pay."""
    monkeypatch.setattr(attention, "takes", lambda *_, **__: native)
    spec = radius_spec(nodes=24, radius=9.0)
    graph = random_graph(spec, 16, full=True)
    edges = spec.edges_of(graph)
    plain = GraphTransformer(spec, EncoderConfig(hidden=hidden))
    embedded = GraphTransformer(spec, EncoderConfig(hidden=hidden, edge_hidden=64))
    assert plain.takes_dense(edges, graph["node_mask"])
    assert not embedded.takes_dense(edges, graph["node_mask"])
