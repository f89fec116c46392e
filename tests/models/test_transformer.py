"""The graph transformer: scales that do not grow with the swarm, options that do as documented."""

import copy

import pytest
import torch
from tests.models.worlds import explicit_spec, radius_spec, random_graph, swarm
from torch import nn
from torch_geometric.nn import GraphNorm as ReferenceGraphNorm

from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.graph_batch import to_dense_batch, to_sparse_batch
from edgewise.models.encoders.norm import GraphNorm
from edgewise.models.encoders.transformer import GraphTransformer

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
        super().__init__(spec, EncoderConfig(hidden=32))
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
    def forward(self, h, batch):
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


def test_rule_edges_run_dense_and_explicit_ones_sparse():
    radius, explicit = radius_spec(), explicit_spec()
    assert GraphTransformer(radius).takes_dense(radius.edges_of(random_graph(radius, 2)))
    assert not GraphTransformer(explicit).takes_dense(explicit.edges_of(random_graph(explicit, 2)))
    never = GraphTransformer(radius, EncoderConfig(dense="never"))
    assert not never.takes_dense(radius.edges_of(random_graph(radius, 2)))


def test_dropout_warns_and_makes_training_differ_from_acting():
    spec, graph = swarm(5, worlds=4)
    with pytest.warns(UserWarning, match="PPO's ratio differ from 1"):
        encoder = GraphTransformer(spec, EncoderConfig(dropout=0.1))
    assert not torch.equal(encoder.train()(graph), encoder.eval()(graph))


def test_without_dropout_training_and_acting_are_one():
    spec, graph = swarm(5, worlds=4)
    encoder = GraphTransformer(spec)
    assert torch.equal(encoder.train()(graph), encoder.eval()(graph))


def test_graph_norm_equals_pyg_on_existing_nodes():
    spec = explicit_spec()
    graph = random_graph(spec, 5)
    edges = spec.edges_of(graph)
    flat, compact = to_sparse_batch(graph, spec, edges, compact=True)
    norm, reference = GraphNorm(4), ReferenceGraphNorm(4)
    for ours, theirs in ((norm.weight, "weight"), (norm.bias, "bias"), (norm.mean_scale, "mean_scale")):
        ours.data.uniform_(0.5, 1.5)
        getattr(reference, theirs).data.copy_(ours.data)
    h = torch.randn(len(flat.x), 4)
    expected = reference(h, flat.batch)
    torch.testing.assert_close(norm(h, compact), expected)
    slots = flat.nodes(h)
    torch.testing.assert_close(
        norm(slots, to_dense_batch(graph, edges))[graph["node_mask"]], expected, rtol=1e-5, atol=1e-5
    )


def test_a_copy_has_its_own_weights():
    spec, graph = swarm(3, worlds=2)
    encoder = GraphTransformer(spec)
    other = copy.deepcopy(encoder)
    for parameter in other.parameters():
        parameter.data.zero_()
    assert encoder(graph).abs().sum() > 0
    assert other(graph).abs().sum() == 0
