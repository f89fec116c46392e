"""Every source of edges, action layout and kind of encoder is exported, and runs on sizes not traced.

Encoders read the edges of a source, and so do the heads of some layouts; a head sees nothing of an encoder
but the embeddings of nodes. So the default tests write every pair of source and encoder, every layout and
every encoder of the examples as ONNX. They trace every pair of a source that computes edges and a layout
that reads them; the edges of all other sources are inputs of a program. The thorough tests write the whole
product.
"""

import itertools
from pathlib import Path

import pytest
import torch
from benchmarks.export import add_noise
from tests.experiments.export.any_env import LAYOUTS, SOURCES, AnyConfig, AnyEnv
from tests.isolation import isolated

import edgewise as ew
from edgewise import plugins
from edgewise.experiments.export import as_function, export_policy
from edgewise.experiments.export.check import _difference, other_sizes, traced_sizes
from edgewise.experiments.export.program import trace
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.distributions.masked import without_mask_checks

EXAMPLES = Path(__file__).parents[3] / "examples"
ENCODERS = ("transformer", "gnn", "mlp")
OF_EXAMPLES = {
    "encoders/gps.py:GPS": {"kind": EXAMPLES / "encoders/gps.py:GPS"},
    "encoders/pna.py:PNA": {"kind": "gnn", "conv": EXAMPLES / "encoders/pna.py:PNA"},
    "encoders/hetero.py:Hetero": {"kind": "gnn", "conv": EXAMPLES / "encoders/hetero.py:Hetero"},
    "tsp/encoder.py:DeepSets": {"kind": EXAMPLES / "tsp/encoder.py:DeepSets"},
    "tsp/convolution.py:MaxConv": {"kind": "gnn", "conv": EXAMPLES / "tsp/convolution.py:MaxConv"},
}
READING_EDGES = (
    *("edge", "edge member", "groups", "edges"),
    *("amounts of edges", "options of edges", "node, then edge"),
)
OTHERS = tuple(layout for layout in LAYOUTS if layout not in READING_EDGES)
LIGHT, HEAVY = tuple(SOURCES)[:3], tuple(SOURCES)[3:]
"""Sources without and with a search for neighbours."""
WRITTEN = [
    *zip(itertools.product(LIGHT, ("transformer", "gnn")), READING_EDGES[:6], strict=True),
    *zip(itertools.product(HEAVY, ("transformer", "gnn")), OTHERS[:6], strict=True),
    (("explicit", "mlp"), READING_EDGES[6]),
    *zip(
        itertools.product(("explicit with features",), OF_EXAMPLES), (*OTHERS[6:], *OTHERS[:2]), strict=True
    ),
]
ALL = list(itertools.product(SOURCES, LAYOUTS, ENCODERS))


@pytest.fixture(autouse=True)
def without_plugins():
    with isolated():
        yield


def policy_of(edges, layout, encoder):
    torch.manual_seed(0)
    env = AnyEnv(AnyConfig(edges=edges, layout=layout, graph_features=2), num_envs=3, seed=0)
    chosen = {name: str(value) for name, value in OF_EXAMPLES.get(encoder, {"kind": encoder}).items()}
    if encoder in OF_EXAMPLES:
        plugins.use_plugin(str(EXAMPLES / encoder.split(":")[0]))
    config = ModelConfig(encoder=EncoderConfig(**chosen, hidden=8, heads=2, layers=1), head_hidden=(8,))
    actor = make_actor_critic(env.graph, env.actions, config).actor
    add_noise(actor)
    return actor.eval(), env


def test_every_layout_and_source_with_each_encoder_is_written():
    assert {layout for _, layout in WRITTEN} == set(LAYOUTS)
    reading = itertools.product(SOURCES, ("transformer", "gnn"))
    assert {pair for pair, _ in WRITTEN} >= {
        *reading,
        *(("explicit with features", own) for own in OF_EXAMPLES),
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_heads_of_some_layouts_read_edges(layout):
    policy, env = policy_of("explicit", layout, "mlp")
    function = as_function(policy, env)
    inputs = function.sample(traced_sizes(function), torch.Generator().manual_seed(0))
    changed = {name: value.flip(-1) if name.startswith("edge") else value for name, value in inputs.items()}
    with torch.no_grad(), without_mask_checks():
        difference = _difference(function(inputs), function(changed))
    assert (difference > 0) == (layout in READING_EDGES)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_environment_keeps_the_contract(layout):
    ew.check_graph_env(AnyEnv(AnyConfig(layout=layout, edges="explicit with features")))


@pytest.mark.parametrize(("pair", "layout"), WRITTEN, ids=str)
def test_a_policy_is_written_as_onnx(pair, layout, tmp_path):
    policy, env = policy_of(pair[0], layout, pair[1])
    assert export_policy(policy, env, tmp_path / "program").checked.passed


@pytest.mark.parametrize(("edges", "layout"), list(itertools.product(HEAVY, READING_EDGES)), ids=str)
def test_a_head_that_reads_edges_is_traced_and_runs_on_other_sizes(edges, layout):
    policy, env = policy_of(edges, layout, "mlp")
    function = as_function(policy, env)
    generator = torch.Generator().manual_seed(0)
    program = trace(function, function.sample(traced_sizes(function), generator)).module()
    for sizes in other_sizes(function):
        inputs = function.sample(sizes, generator)
        with torch.no_grad(), without_mask_checks():
            assert _difference(function(inputs), program(inputs)) < 1e-5


@pytest.mark.thorough
@pytest.mark.parametrize(("edges", "layout", "encoder"), ALL, ids=str)
def test_every_combination_is_written_as_onnx(edges, layout, encoder, tmp_path):
    policy, env = policy_of(edges, layout, encoder)
    assert export_policy(policy, env, tmp_path / "program").checked.passed
