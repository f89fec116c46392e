"""Every source of edges, action layout and kind of encoder is exported, and runs on sizes not traced."""

import itertools

import pytest
import torch
from benchmarks.export import add_noise
from tests.experiments.export.any_env import LAYOUTS, SOURCES, AnyConfig, AnyEnv

import edgewise as ew
from edgewise.experiments.export import as_function, export_policy
from edgewise.experiments.export.check import _difference, other_sizes, traced_sizes
from edgewise.experiments.export.program import trace
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.distributions.masked import without_mask_checks

ENCODERS = ("transformer", "gnn", "mlp")
ALL = list(itertools.product(SOURCES, LAYOUTS, ENCODERS))


def covering(number):
    """A list in which every source, layout and encoder meets: layout n with source and encoder n."""
    sources, encoders = list(SOURCES), list(ENCODERS)
    return [
        (sources[(place + number) % len(sources)], layout, encoders[(place + number) % len(encoders)])
        for place, layout in enumerate(LAYOUTS)
    ]


def policy_of(edges, layout, encoder):
    torch.manual_seed(0)
    env = AnyEnv(AnyConfig(edges=edges, layout=layout, graph_features=2), num_envs=3, seed=0)
    config = ModelConfig(encoder=EncoderConfig(kind=encoder, hidden=8, heads=2, layers=1), head_hidden=(8,))
    actor = make_actor_critic(env.graph, env.actions, config).actor
    add_noise(actor)
    return actor.eval(), env


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_environment_keeps_the_contract(layout):
    ew.check_graph_env(AnyEnv(AnyConfig(layout=layout, edges="explicit with features")))


def is_traced(edges, layout, encoder):
    policy, env = policy_of(edges, layout, encoder)
    function = as_function(policy, env)
    generator = torch.Generator().manual_seed(0)
    program = trace(function, function.sample(traced_sizes(function), generator)).module()
    for sizes in other_sizes(function):
        inputs = function.sample(sizes, generator)
        with torch.no_grad(), without_mask_checks():
            assert _difference(function(inputs), program(inputs)) < 1e-5


@pytest.mark.parametrize(("edges", "layout", "encoder"), covering(0), ids=str)
def test_a_combination_is_traced_and_runs_on_other_sizes(edges, layout, encoder):
    is_traced(edges, layout, encoder)


@pytest.mark.thorough
@pytest.mark.parametrize(("edges", "layout", "encoder"), ALL, ids=str)
def test_every_combination_is_written_as_onnx(edges, layout, encoder, tmp_path):
    policy, env = policy_of(edges, layout, encoder)
    assert export_policy(policy, env, tmp_path / "program").checked.passed


@pytest.mark.parametrize(
    ("edges", "layout", "encoder"),
    [
        ("nearest", "node", "transformer"),
        ("radius", "node, then edge", "gnn"),
        ("topology", "edge", "transformer"),
    ],
    ids=str,
)
def test_combinations_are_written_as_onnx(edges, layout, encoder, tmp_path):
    policy, env = policy_of(edges, layout, encoder)
    assert export_policy(policy, env, tmp_path / "program").checked.passed
