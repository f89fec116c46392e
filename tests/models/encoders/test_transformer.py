"""The graph transformer: scales that do not grow with the swarm, options that do as documented."""

import copy
from dataclasses import replace

import pytest
import torch
from tests.models.worlds import explicit_spec, radius_spec, random_graph, swarm
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.graph_batch import to_dense_batch, to_sparse_batch
from edgewise.models.encoders.transformer import GraphTransformer, TransformerBlock
from edgewise.models.native import attention

SIZES = [3, 7, 10, 20, 50, 200]


def scales(make, seed):
    """The largest logit of any layer, and the gradient norm of a read-out of one agent, by swarm size."""
    torch.manual_seed(seed)
    encoder = make(swarm(3)[0])
    readout = torch.randn(encoder.hidden)
    logits, gradients = [], []
    for agents in SIZES:
        spec, graph = swarm(agents, worlds=16 if agents < 100 else 3, seed=seed)
        encoder.graph = spec
        found = encoder.diagnostics(graph)
        logits.append(max(value for name, value in found.items() if name.endswith("logit_max")))
        encoder.zero_grad()
        (encoder(graph)[:, 0] @ readout).mean().backward()
        gradients.append(sum(parameter.grad.square().sum() for parameter in encoder.parameters()).sqrt())
    return torch.stack(logits), torch.stack(gradients)


def spread(make):
    """How much logits and gradients, as means of three initialisations, differ between swarm sizes."""
    logits, gradients = (
        torch.stack(runs).mean(0) for runs in zip(*(scales(make, s) for s in range(3)), strict=True)
    )
    return logits.max() / logits.min(), gradients.max() / gradients.min()


@pytest.mark.parametrize("options", [{}, {"feed_forward": 2}])
def test_logits_and_gradients_are_the_same_from_3_to_200_agents(options):
    config = EncoderConfig(hidden=32, **options)
    logit, gradient = spread(lambda spec: GraphTransformer(spec, config))
    assert logit < 1.5
    assert gradient < 1.5


class SumBeforeAttention(GraphTransformer):
    """Planted fault: nodes are summed over their neighbours before attention, and nothing is normalised."""

    def __init__(self, spec):
        super().__init__(spec, EncoderConfig(hidden=32, dense="always"))
        self.trunk.embed.norm = nn.Identity()
        self.trunk.embed.register_forward_hook(lambda module, inputs, h: self.neighbours @ h)
        for block in self.trunk.blocks:
            block.norm = _Plain()

    def _batch(self, graph):
        self.neighbours = to_dense_batch(graph, self.graph.edges_of(graph)).linked.float()
        return super()._batch(graph)

    def forward(self, graph):
        self._batch(graph)
        return super().forward(graph)


class _Plain(nn.Module):
    def forward(self, h):
        return h


def test_the_scale_test_catches_sums_before_attention():
    logit, gradient = spread(SumBeforeAttention)
    assert logit > 10
    assert gradient > 1.5


def test_diagnostics_of_uniform_attention():
    spec, graph = swarm(5, worlds=4)
    encoder = GraphTransformer(spec, EncoderConfig(hidden=16))
    for block in encoder.trunk.blocks:
        nn.init.zeros_(block.attention.project.weight)
        nn.init.zeros_(block.attention.project.bias)
    found = encoder.diagnostics(graph)
    for layer in range(3):
        assert found[f"layer_{layer}/logit_max"] == 0
        torch.testing.assert_close(found[f"layer_{layer}/entropy"], torch.tensor(1.0))
    torch.testing.assert_close(found["embedding/rms"], torch.tensor(1.0), rtol=1e-3, atol=0)
    assert all(value.shape == () for value in found.values())


@pytest.mark.parametrize("dense", ["always", "never"])
@pytest.mark.parametrize("compact", [False, True])
def test_diagnostics_are_the_same_in_every_layout(dense, compact):
    spec = explicit_spec()
    graph = random_graph(spec, 3, 4)
    torch.manual_seed(0)
    reference = GraphTransformer(spec).diagnostics(graph)
    torch.manual_seed(0)
    found = GraphTransformer(spec, EncoderConfig(dense=dense, compact=compact)).diagnostics(graph)
    assert found.keys() == reference.keys()
    for name, value in reference.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)


def test_attention_on_one_neighbour_has_entropy_zero():
    spec, graph = swarm(5, worlds=4)
    encoder = GraphTransformer(spec, EncoderConfig(hidden=16))
    for block in encoder.trunk.blocks:
        block.attention.project.weight.data *= 100
    assert encoder.diagnostics(graph)["layer_0/entropy"] < 0.1


def crowd(nodes, degree):
    """Graphs of a radius rule with all pairs as slots, and about `degree` neighbours per node."""
    spec = radius_spec(nodes=nodes, radius=10.0)
    edges = spec.edges_of(random_graph(spec, 20, full=True))
    kept = torch.rand(edges.mask.shape, generator=torch.Generator().manual_seed(0)) < degree / (nodes - 1)
    return spec, replace(edges, mask=edges.mask & kept), torch.ones(20, nodes, dtype=torch.bool)


@pytest.mark.parametrize(
    ("nodes", "degree", "hidden", "native", "is_dense"),
    [
        (6, 2.7, 32, False, False),
        (6, 2.7, 64, False, False),
        (10, 8.7, 64, False, True),
        (23, 10.7, 32, False, True),
        (23, 3.2, 64, False, False),
        (10, 8.7, 64, True, False),
        (23, 21.0, 64, True, False),
        (23, 12.0, 128, True, False),
        (23, 21.5, 128, True, True),
    ],
)
def test_all_pairs_run_dense_if_there_are_many_neighbours(
    nodes, degree, hidden, native, is_dense, monkeypatch
):
    """With the sparse layout in C, dense matrices are faster for wide models only."""
    monkeypatch.setattr(attention, "takes", lambda *_, **__: native)
    spec, edges, exists = crowd(nodes, degree)
    assert GraphTransformer(spec, EncoderConfig(hidden=hidden)).takes_dense(edges, exists) is is_dense


@pytest.mark.parametrize("native", [False, True])
def test_listed_edges_of_a_rule_run_dense_if_there_are_many(native, monkeypatch):
    monkeypatch.setattr(attention, "takes", lambda *_, **__: native)
    config = EncoderConfig(hidden=128)
    for radius, is_dense in ((0.1, False), (5.0, True)):
        spec = radius_spec(nodes=250, radius=radius)
        graph = random_graph(spec, 1, full=True)
        edges = spec.edges_of(graph)
        assert not edges.complete
        assert GraphTransformer(spec, config).takes_dense(edges, graph["node_mask"]) is is_dense


def test_settings_decide_before_the_number_of_neighbours():
    spec, few, exists = crowd(10, 1.0)
    _, many, _ = crowd(10, 9.0)
    assert GraphTransformer(spec, EncoderConfig(dense="always")).takes_dense(few, exists)
    assert not GraphTransformer(spec, EncoderConfig(dense="never")).takes_dense(many, exists)
    assert GraphTransformer(spec, EncoderConfig(compact=False)).takes_dense(few, exists)
    explicit = explicit_spec()
    graph = random_graph(explicit, 2)
    assert not GraphTransformer(explicit).takes_dense(explicit.edges_of(graph), graph["node_mask"])


def test_no_edge_is_counted_where_the_host_would_wait():
    spec, _, _ = crowd(10, 1.0)
    with FakeTensorMode():
        graph = spec.zeros(4)
        assert GraphTransformer(spec).takes_dense(spec.edges_of(graph), graph["node_mask"])


def test_missing_edges_are_reported_once():
    spec = GraphSpec(4, 3, Radius(9.0, search="cells", max_edges=5), position_dim=2)
    graph = spec.zeros(2)
    graph["node_mask"][:] = True
    encoder = GraphTransformer(spec, EncoderConfig(hidden=16))
    encoder(graph)
    assert encoder.diagnostics(graph)["edges/overflow"] == 1
    graph["node_mask"][:, 2:] = False
    encoder(graph)
    assert encoder.diagnostics(graph)["edges/overflow"] == 0


def test_training_and_acting_are_one():
    spec, graph = swarm(5, worlds=4)
    encoder = GraphTransformer(spec)
    assert torch.equal(encoder.train()(graph), encoder.eval()(graph))


def test_a_copy_has_its_own_weights():
    spec, graph = swarm(3, worlds=2)
    encoder = GraphTransformer(spec)
    other = copy.deepcopy(encoder)
    for parameter in other.parameters():
        parameter.data.zero_()
    assert encoder(graph).abs().sum() > 0
    assert other(graph).abs().sum() == 0


def test_both_parts_of_a_block_add_to_what_they_read():
    """Layers whose weights and biases are zero change nothing."""
    block, spec = (
        TransformerBlock(EncoderConfig(hidden=8, heads=2, feed_forward=3), 0),
        explicit_spec(edge_features=0),
    )
    graph = random_graph(spec, 4)
    _, batch = to_sparse_batch(graph, spec, spec.edges_of(graph), compact=True)
    h = torch.randn(len(batch.batch), 8)
    assert block.feed_forward[0].out_features == 24
    last = block.feed_forward[-1]
    for layer in (block.attention.project, last):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    assert torch.equal(block(h, batch)[0], h)
    nn.init.ones_(last.bias)
    torch.testing.assert_close(block(h, batch)[0], h + 1)
    nn.init.normal_(last.weight)
    torch.testing.assert_close(block(h, batch)[0], h + block.feed_forward(block.feed_forward_norm(h)))
    nn.init.zeros_(last.weight)
    nn.init.ones_(block.attention.project.bias)
    assert not torch.allclose(block(h, batch)[0], h + 1)
