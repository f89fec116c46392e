"""Attention against PyG's TransformerConv, and its two layouts against each other."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import TransformerConv
from torch_geometric.utils import softmax

from edgewise.models.encoders.attention import EdgeAttention, no_edge, segment_softmax

CHANNELS, HEADS = 12, 3


def union_of(nodes, edges, features, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(nodes, CHANNELS, generator=generator, dtype=torch.float64)
    index = torch.randint(0, nodes, (2, edges), generator=generator)
    attr = torch.randn(edges, features, generator=generator, dtype=torch.float64) if features else None
    return h, index, attr


def as_transformer_conv(attention, features):
    """PyG's layer with the same weights."""
    conv = TransformerConv(CHANNELS, CHANNELS // HEADS, heads=HEADS, edge_dim=features or None).double()
    parts = zip(attention.project.weight.chunk(4), attention.project.bias.chunk(4), strict=True)
    linears = (conv.lin_query, conv.lin_key, conv.lin_value, conv.lin_skip)
    for linear, (weight, bias) in zip(linears, parts, strict=True):
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
    if features:
        conv.lin_edge.weight.data = attention.edge.data.T.clone()
    return conv


@pytest.mark.parametrize("features", [0, 1, 4])
def test_equals_transformer_conv_with_copied_weights(features):
    attention = EdgeAttention(CHANNELS, HEADS, edge_features=features).double()
    conv = as_transformer_conv(attention, features)
    h, index, attr = union_of(9, 30, features)
    ours, theirs = h.clone().requires_grad_(), h.clone().requires_grad_()
    output, expected = attention.sparse(ours, index, attr)[0], conv(theirs, index, attr)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
    output.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-10)
    key_bias = attention.project.bias.grad.chunk(4)[1]
    torch.testing.assert_close(key_bias, conv.lin_key.bias.grad, rtol=0, atol=1e-10)


def layouts(graphs, nodes, density, features, *, seed):
    """The same random simple graphs as one union and as matrices."""
    generator = torch.Generator().manual_seed(seed)
    linked = torch.rand(graphs, nodes, nodes, generator=generator) < density
    planes = torch.randn(features, graphs, nodes, nodes, generator=generator) if features else None
    graph, target, source = linked.nonzero(as_tuple=True)
    index = torch.stack((graph * nodes + source, graph * nodes + target))
    attr = planes[:, graph, target, source].T if features else None
    bias = torch.zeros(linked.shape).masked_fill(~linked, no_edge(torch.float32))
    planes = planes.masked_fill(~linked, 0.0) if features else None
    return (index, attr), (bias, planes)


@given(
    st.integers(1, 3),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.2, 0.6, 1.0]),
    st.sampled_from([0, 1, 3, 10]),
    st.integers(0, 1000),
)
def test_dense_equals_sparse_forward_and_backward(graphs, nodes, density, features, seed):
    torch.manual_seed(seed)
    attention = EdgeAttention(CHANNELS, HEADS, edge_features=features)
    sparse, dense = layouts(graphs, nodes, density, features, seed=seed)
    h, weight = torch.randn(graphs, nodes, CHANNELS), torch.randn(graphs, nodes, CHANNELS)
    outputs, gradients = [], []
    for run in (
        lambda z: attention.sparse(z.flatten(0, 1), *sparse)[0].view_as(z),
        lambda z: attention.dense(z, *dense)[0],
    ):
        z = h.clone().requires_grad_()
        attention.zero_grad()
        output = run(z)
        (output * weight).sum().backward()
        outputs.append(output.detach())
        gradients.append([z.grad, *(p.grad.clone() for p in attention.parameters() if p.grad is not None)])
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-5, atol=1e-5)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_no_neighbour_gives_the_root_alone():
    attention = EdgeAttention(CHANNELS, HEADS, edge_features=2)
    h = torch.randn(1, 4, CHANNELS)
    alone = torch.full((1, 4, 4), no_edge(torch.float32))
    root = attention.project(h).chunk(4, -1)[3]
    torch.testing.assert_close(attention.dense(h, alone, torch.zeros(2, 1, 4, 4))[0], root)
    none = torch.empty(2, 0, dtype=torch.int64)
    torch.testing.assert_close(attention.sparse(h[0], none, torch.empty(0, 2))[0], root[0])


def test_one_neighbour_gets_all_attention_whatever_its_logit():
    attention = EdgeAttention(CHANNELS, HEADS)
    h = torch.randn(2, CHANNELS)
    value = attention.project(h).chunk(4, -1)[2]
    root = attention.project(h).chunk(4, -1)[3]
    output, weights = attention.sparse(h, torch.tensor([[0], [1]]), None)
    torch.testing.assert_close(weights.alpha, torch.ones(1, HEADS))
    torch.testing.assert_close(output[1], value[0] + root[1])


@given(st.integers(1, 5), st.integers(0, 12), st.floats(0.1, 200), st.integers(0, 1000))
def test_segment_softmax_equals_pyg(segments, length, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(length, 2, generator=generator) * scale
    segment = torch.randint(0, segments, (length,), generator=generator)
    expected = softmax(logits, segment, num_nodes=segments)
    torch.testing.assert_close(segment_softmax(logits, segment, segments), expected)


def test_channels_must_divide_into_heads():
    with pytest.raises(ValueError, match="10 channels do not divide into 3 heads"):
        EdgeAttention(10, 3)
