"""Parallel edges: the sparse layout counts each, and the dense one refuses what it cannot hold."""

import pytest
import torch

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.transformer import GraphTransformer

SPEC = GraphSpec(3, 2, edges=Explicit(3, num_features=1))


def encoder(dense):
    torch.manual_seed(0)
    return GraphTransformer(SPEC, EncoderConfig(hidden=8, heads=2, layers=1, dense=dense))


def graphs(last):
    """Two graphs of three edges; `last` is the third edge of the second."""
    graph = SPEC.zeros(2)
    graph["x"] = torch.randn(2, 3, 2)
    graph["node_mask"][:] = True
    graph["edge_index"][:] = torch.tensor([[0, 1, 2], [1, 2, 0]])
    graph["edge_index"][1, :, 2] = torch.tensor(last)
    graph["edge_mask"][:] = True
    graph["edge_attr"] = torch.randn(2, 3, 1)
    return graph


def test_both_layouts_agree_on_simple_graphs():
    graph = graphs((2, 1))
    torch.testing.assert_close(encoder("always")(graph), encoder("never")(graph))


@pytest.mark.parametrize("dense", ["auto", "never"])
def test_the_sparse_layout_counts_each(dense):
    twice, once = graphs((0, 1)), None
    once = twice.clone()
    once["edge_mask"][1, 2] = False
    assert not torch.allclose(encoder(dense)(twice)[1], encoder(dense)(once)[1])


def test_the_dense_layout_refuses_them():
    with pytest.raises(
        ValueError, match=r"graph\[1\] has two edges with the same source and target.*auto or never"
    ):
        encoder("always")(graphs((0, 1)))


def test_an_absent_edge_is_not_parallel():
    graph = graphs((0, 1))
    graph["edge_mask"][1, 2] = False
    encoder("always")(graph)
