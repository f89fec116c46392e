"""The model contract: what every encoder promises about padding, order, batches, reach and gradients.

Each check is a function of an encoder, so that the planted faults at the end can show that it can fail.
"""

import pytest
import torch
from tests.models.worlds import NODES, explicit_spec, radius_spec, random_graph
from torch import nn

from edgewise.graphs.edges import Explicit
from edgewise.models.build import make_encoder
from edgewise.models.compile import compile_module
from edgewise.models.config import Conv, EncoderConfig

SMALL = {"hidden": 8, "heads": 2, "layers": 2}
TRANSFORMERS = {
    "transformer": {},
    "transformer, dense": {"dense": "always"},
    "transformer, sparse": {"dense": "never", "compact": False},
    "transformer, compact": {"dense": "never", "compact": True},
    "transformer, options": {"feed_forward": 2, "edge_hidden": 5},
}
INSTANCE_NORM = {
    "instance norm": {"norm": "instance"},
    "instance norm, dense": {"norm": "instance", "dense": "always", "feed_forward": 2},
    "instance norm, sparse": {"norm": "instance", "dense": "never", "compact": False, "feed_forward": 2},
}
"""All nodes of a graph depend on each other, and a single node has nothing that differs."""
CONVS = {conv: {"kind": "gnn", "conv": conv} for conv in Conv.__args__}
STATIC = {f"{conv}, static": {**options, "compact": False} for conv, options in CONVS.items()}
LOCAL = {**TRANSFORMERS, **CONVS, **STATIC}
EQUIVARIANT = {**LOCAL, **INSTANCE_NORM}
ALL = {**EQUIVARIANT, "mlp": {"kind": "mlp"}}
SPECS = {"explicit": explicit_spec, "radius": radius_spec}
KEY_BIAS = "lin_key.bias"
"""A key's bias adds the same to every logit of a node, so softmax gives it no gradient."""


def build(options, spec):
    torch.manual_seed(0)
    return make_encoder(spec, EncoderConfig(**{**SMALL, **options})).double()


def same(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.fixture(params=SPECS, ids=str)
def spec(request):
    return SPECS[request.param]()


def graphs(spec, *lead, **options):
    return random_graph(spec, *lead, dtype=torch.float64, **options)


def permuted(graph, order):
    """The same graphs with slot `k` holding what was in slot `order[k]`."""
    moved = graph.clone()
    for key in {"x", "pos"} & set(graph.keys()):
        moved[key] = graph[key][..., order, :]
    for key in ("node_mask", "node_type"):
        moved[key] = graph[key][..., order]
    if graph.get("edge_index", None) is not None:
        moved["edge_index"] = order.argsort()[graph["edge_index"]]
    return moved


def check_permutation(encoder, spec):
    graph, order = graphs(spec, 6), torch.randperm(NODES)
    same(encoder(permuted(graph, order)), encoder(graph)[..., order, :])


def padded(graph, spec):
    """The same graphs in a spec with more slots for nodes and edges, their contents garbage."""
    if isinstance(spec.edges, Explicit):
        larger = explicit_spec(nodes=NODES + 3, edges=spec.edges.num_edges + 5)
    else:
        larger = radius_spec(nodes=NODES + 3)
    roomy = larger.zeros(*graph.batch_size)
    for key in list(graph.keys()):
        value, target = graph[key], roomy[key]
        fill = {torch.bool: False, torch.int64: 1}.get(value.dtype, torch.nan)
        grown = torch.full(target.shape, fill, dtype=value.dtype)
        grown[tuple(slice(size) for size in value.shape)] = value
        roomy[key] = grown
    return larger, roomy


def check_padding(encoder, spec):
    graph = graphs(spec, 6)
    expected = encoder(graph)
    larger, roomy = padded(graph, spec)
    encoder.graph = larger
    output = encoder(roomy)
    same(output[..., :NODES, :], expected)
    assert (output[..., NODES:, :] == 0).all()


def check_batch(encoder, spec):
    graph = graphs(spec, 2, 3)
    output = encoder(graph)
    same(encoder(graph.reshape(6)).view_as(output), output)
    same(encoder(graph.transpose(0, 1)).transpose(0, 1), output)
    for row in range(2):
        for column in range(3):
            same(encoder(graph[row, column]), output[row, column])


def check_gradients(encoder, spec):
    output = encoder(graphs(spec, 40, full=True))
    torch.manual_seed(1)
    (output * torch.randn_like(output)).sum().backward()
    silent = [
        name for name, p in encoder.named_parameters() if p.grad is None or not p.grad.abs().max() > 1e-9
    ]
    assert [name for name in silent if not name.endswith(KEY_BIAS)] == []
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


def unreachable(spec):
    """Graphs whose last node has no edge, and the same with that node's features changed."""
    graph = graphs(spec, 5, full=True)
    if isinstance(spec.edges, Explicit):
        graph["edge_mask"] &= (graph["edge_index"] != NODES - 1).all(-2)
        graph["edge_attr"] = graph["edge_attr"].nan_to_num()
    else:
        graph["pos"][..., -1, :] = 50.0
    changed = graph.clone()
    changed["x"][..., -1, :] += 1.0
    return graph, changed


def check_locality(encoder, spec):
    graph, changed = unreachable(spec)
    before, after = encoder(graph), encoder(changed)
    assert torch.equal(before[..., :-1, :], after[..., :-1, :])
    return before, after


@pytest.mark.parametrize("options", EQUIVARIANT.values(), ids=EQUIVARIANT)
def test_permuting_nodes_permutes_outputs(options, spec):
    check_permutation(build(options, spec), spec)


@pytest.mark.parametrize("options", EQUIVARIANT.values(), ids=EQUIVARIANT)
def test_more_padding_changes_nothing(options, spec):
    check_padding(build(options, spec), spec)


@pytest.mark.parametrize("options", ALL.values(), ids=ALL)
def test_a_batch_equals_its_graphs_one_by_one(options, spec):
    check_batch(build(options, spec), spec)


@pytest.mark.parametrize("options", ALL.values(), ids=ALL)
def test_gradient_reaches_every_parameter(options, spec):
    check_gradients(build(options, spec), spec)


@pytest.mark.parametrize("options", LOCAL.values(), ids=LOCAL)
def test_a_node_without_a_path_changes_nobody_but_itself(options, spec):
    before, after = check_locality(build(options, spec), spec)
    assert not torch.equal(before[..., -1, :], after[..., -1, :])


@pytest.mark.parametrize("options", LOCAL.values(), ids=LOCAL)
def test_an_isolated_node_is_finite_and_shows_its_features(options, spec):
    encoder = build(options, spec)
    graph = graphs(spec, 8)
    graph["node_mask"] = torch.arange(NODES) < torch.ones(8, 1)
    graph["x"] = torch.randn(8, NODES, 3, dtype=torch.float64)
    graph["node_type"].zero_()
    if graph.get("pos", None) is not None:
        graph["pos"] = torch.randn(8, NODES, 2, dtype=torch.float64)
    alone = encoder(graph)[:, 0]
    assert alone.isfinite().all()
    assert torch.pdist(alone).min() > 1e-6
    alone.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize("options", EQUIVARIANT.values(), ids=EQUIVARIANT)
def test_coincident_nodes_give_no_nan(options):
    spec = radius_spec()
    encoder, graph = build(options, spec), graphs(spec, 4, full=True)
    graph["pos"] = graph["pos"][..., :1, :].expand_as(graph["pos"]).clone().requires_grad_()
    encoder(graph).sum().backward()
    seen = graph["pos"].grad
    assert seen is None or seen.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize("options", ALL.values(), ids=ALL)
def test_absent_graphs_and_graphs_without_edges_work(options, spec):
    encoder = build(options, spec)
    empty = spec.zeros(3)
    for key in {"x", "pos", "edge_attr"} & set(empty.keys()):
        empty[key] = empty[key].double()
    assert (encoder(empty) == 0).all()
    empty["node_mask"][1:] = True
    if empty.get("pos", None) is not None:
        empty["pos"] = 10.0 * torch.arange(NODES).double().view(1, NODES, 1).expand(3, NODES, 2)
    output = encoder(empty)
    assert (output[0] == 0).all()
    assert output.isfinite().all()


LAYOUTS = {**TRANSFORMERS, **INSTANCE_NORM}


@pytest.mark.parametrize("options", [*LAYOUTS.values()][1:], ids=[*LAYOUTS][1:])
def test_every_layout_of_attention_is_one_function(options, spec):
    """Also forward and backward within 1e-5 in single precision; the exact bound is in tests of attention."""
    layouts = {"dense": "never", "compact": False}
    reference = build({**options, **layouts}, spec).float()
    other = build(options, spec).float()
    graph = random_graph(spec, 2, 5)
    outputs = [encoder(graph) for encoder in (reference, other)]
    torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)
    for output in outputs:
        output.square().mean().backward()
    for one, two in zip(reference.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", EQUIVARIANT.values(), ids=EQUIVARIANT)
def test_a_size_never_seen_needs_no_rebuild(options):
    encoder = build(options, radius_spec())
    assert encoder(graphs(radius_spec(nodes=40), 2)).shape == (2, 40, 8)


def test_the_mlp_says_that_its_size_is_fixed():
    encoder = build({"kind": "mlp"}, radius_spec())
    with pytest.raises(ValueError, match="built for 7 node slots and got 9"):
        encoder(graphs(radius_spec(nodes=9), 2))


def test_what_padding_holds_never_matters_to_the_mlp(spec):
    encoder, graph = build({"kind": "mlp"}, spec), graphs(spec, 6)
    clean = graph.clone()
    clean["x"] = graph["x"].nan_to_num(7.0)
    if clean.get("pos", None) is not None:
        clean["pos"] = graph["pos"].nan_to_num(-3.0)
    assert torch.equal(encoder(graph), encoder(clean))


def test_a_compiled_encoder_gives_the_same_over_changing_sizes():
    plain, compiled = (build({"dense": "never", "layers": 1}, explicit_spec()) for _ in range(2))
    compile_module(compiled.trunk, enabled=True)
    for seed, lead in enumerate([(3,), (2, 2), (5,)]):
        graph = graphs(explicit_spec(), *lead, seed=seed)
        same(compiled(graph), plain(graph))
    compiled(graph).sum().backward()
    plain(graph).sum().backward()
    for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
        same(one.grad, other.grad)


class Faulty(nn.Module):
    """An encoder with something wrong in what it adds to the output."""

    def __init__(self, encoder, fault):
        super().__init__()
        self.encoder, self.fault = encoder, fault

    @property
    def graph(self):
        return self.encoder.graph

    @graph.setter
    def graph(self, spec):
        self.encoder.graph = spec

    def forward(self, graph):
        return self.encoder(graph) + self.fault(graph)


def _slot_number(graph):
    return torch.arange(graph["x"].shape[-2]).unsqueeze(-1).expand(*graph["node_mask"].shape, 1)


def _padding_counts(graph):
    return graph["node_mask"].double().mean(-1)[..., None, None]


def _batch_mates(graph):
    return graph["x"].nan_to_num().mean()


def _whole_graph(graph):
    return graph["x"].nan_to_num().sum(-2, keepdim=True).sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        (check_permutation, _slot_number),
        (check_padding, _padding_counts),
        (check_batch, _batch_mates),
        (check_locality, _whole_graph),
    ],
    ids=lambda part: part.__name__,
)
def test_planted_faults_are_caught(check, fault, spec):
    check(build({}, spec), spec)
    with pytest.raises(AssertionError):
        check(Faulty(build({}, spec), fault), spec)


def test_a_silent_parameter_is_caught(spec):
    encoder = build({}, spec)
    encoder.spare = nn.Parameter(torch.ones(1))
    with pytest.raises(AssertionError, match="spare"):
        check_gradients(encoder, spec)
