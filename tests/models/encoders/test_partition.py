"""Graphs in parts: the same embeddings and gradients as in one pass, with less memory."""

from typing import Any

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor, nn

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.build import make_encoder
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.graph_batch import SparseBatch
from edgewise.models.encoders.partition import split

SPEC = GraphSpec(num_nodes=9, node_features=3, edges=Explicit(num_edges=20, num_features=2), node_types=2)
CONVS = ("GATv2Conv", "GATConv", "TransformerConv", "GINEConv", "GINConv", "SAGEConv", "GENConv", "GraphConv")
ENCODERS = [
    {"kind": "transformer"},
    {"kind": "transformer", "feed_forward": 2},
    {"kind": "transformer", "edge_hidden": 5},
    {"kind": "gnn", "conv": "GINEConv", "edge_hidden": 5},
] + [{"kind": "gnn", "conv": conv} for conv in CONVS]


def graphs(count: int = 4) -> TensorDict:
    """Sample graphs with padding, parallel edges and a node without edges."""
    generator = torch.Generator().manual_seed(0)
    graph = SPEC.zeros(count)
    graph["x"] = torch.randn(graph["x"].shape, generator=generator)
    graph["node_mask"] = torch.arange(9) < torch.tensor([9, 6, 1, 8])[:count, None]
    sizes = graph["node_mask"].sum(-1).view(-1, 1, 1)
    graph["edge_index"] = torch.randint(99, graph["edge_index"].shape, generator=generator) % sizes
    graph["edge_mask"] = (torch.rand(graph["edge_mask"].shape, generator=generator) < 0.8) & (
        sizes[..., 0] > 1
    )
    graph["edge_attr"] = torch.randn(graph["edge_attr"].shape, generator=generator)
    graph["node_type"] = torch.randint(2, graph["node_type"].shape, generator=generator)
    return graph


def gradients(encoder: nn.Module, graph: TensorDict) -> dict[str, Tensor]:
    """Return embeddings and the gradients of parameters, node features and edge features."""
    graph = graph.clone()
    leaves = {name: graph[name].requires_grad_() for name in ("x", "edge_attr")}
    h = encoder(graph)
    weight = torch.linspace(-1, 1, h.numel()).view(h.shape)
    named = {**leaves, **dict(encoder.named_parameters())}
    found = torch.autograd.grad((h * weight).sum(), list(named.values()), materialize_grads=True)
    return {"h": h.detach(), **dict(zip(named, found, strict=True))}


@pytest.mark.parametrize("compact", [None, False])
@pytest.mark.parametrize("size", [1, 5, 23])
@pytest.mark.parametrize("settings", ENCODERS, ids=lambda each: "-".join(map(str, each.values())))
def test_equals_one_pass(settings: dict[str, Any], size: int, compact: bool | None) -> None:
    config = EncoderConfig(hidden=8, layers=3, heads=2, compact=compact, **settings)
    torch.manual_seed(0)
    whole = make_encoder(SPEC, config).double()
    in_parts = make_encoder(SPEC, config.model_copy(update={"part_size": size})).double()
    in_parts.load_state_dict(whole.state_dict())
    graph = graphs().apply(lambda value: value.double() if value.is_floating_point() else value)
    expected, found = gradients(whole, graph), gradients(in_parts, graph)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-11, msg=name)


def test_parts_hold_each_edge_once_with_its_senders() -> None:
    edge_index = torch.tensor([[5, 0, 1, 4, 4, 2], [0, 1, 3, 3, 5, 0]])
    batch = SparseBatch(edge_index, None, torch.tensor([0, 0, 0, 1, 1, 1]), 2, None)
    first, second, third = split(batch, size=2)
    assert first.nodes.tolist() == [0, 1, 2, 5]
    assert second.nodes.tolist() == [2, 3, 1, 4]
    assert third.nodes.tolist() == [4, 5]
    assert sorted(torch.cat([first.edges, second.edges, third.edges]).tolist()) == list(range(6))
    for part in (first, second, third):
        ends = part.nodes[part.batch.edge_index]
        assert torch.equal(ends, edge_index[:, part.edges])
        assert torch.equal(part.batch.batch, batch.batch[part.nodes])


def test_a_part_that_receives_nothing() -> None:
    batch = SparseBatch(torch.tensor([[3], [3]]), None, torch.zeros(4, dtype=torch.int64), 1, None)
    first, second = split(batch, size=2)
    assert len(first.edges) == 0
    assert second.edges.tolist() == [0]


def test_messages_of_one_part_are_kept_at_a_time() -> None:
    def kept(part_size: int | None) -> int:
        config = EncoderConfig(hidden=8, layers=3, heads=2, part_size=part_size)
        encoder, sizes = make_encoder(SPEC, config), []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: sizes.append(tensor.numel()) or tensor, lambda tensor: tensor
        ):
            encoder(graphs())
        return sum(sizes)

    assert kept(8) < 0.5 * kept(None)


def test_second_use_of_changed_weights_is_refused() -> None:
    encoder = make_encoder(SPEC, EncoderConfig(hidden=8, layers=1, heads=2, part_size=4))
    h = encoder(graphs())
    with torch.no_grad():
        next(encoder.trunk.blocks.parameters()).add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        h.sum().backward()


def test_diagnostics_have_no_attention() -> None:
    encoder = make_encoder(SPEC, EncoderConfig(hidden=8, layers=1, heads=2, part_size=4))
    whole = make_encoder(SPEC, EncoderConfig(hidden=8, layers=1, heads=2))
    whole.load_state_dict(encoder.state_dict())
    found, expected = encoder.diagnostics(graphs()), whole.diagnostics(graphs())
    assert "layer_0/entropy" in expected
    assert found.keys() == {name for name in expected if "logit" not in name and "entropy" not in name}
    torch.testing.assert_close(found["layer_0/rms"], expected["layer_0/rms"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "mlp"}, "passes no messages"),
        ({"kind": "gnn", "conv": "GCNConv"}, "degrees of senders"),
        ({"dense": "always"}, "matrices of whole graphs"),
    ],
)
def test_refused_in_words(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EncoderConfig(part_size=4, **settings)
