"""An exported policy does what the policy does, on graphs of any size, and says what it expects."""

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from math import inf

import numpy
import pytest
import torch
from benchmarks.export import FORMATS, add_noise, policy_of
from tests.algorithms.robots import DISCRETE, OFF_POLICY

import edgewise as ew
from edgewise import plugins
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.envs.policy import acting_in
from edgewise.experiments.build import Builder
from edgewise.experiments.export import as_function, export_policy
from edgewise.experiments.export.check import (
    Checked,
    Tried,
    _count_differing,
    as_arrays,
    call,
    check,
    decoded,
    observations,
    other_sizes,
    sizes_of,
    traced_sizes,
)
from edgewise.experiments.export.program import load, trace
from edgewise.experiments.export.readme import program_text
from edgewise.experiments.load import load_config
from edgewise.graphs.actions import AgentsDiscrete
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import ModelConfig
from edgewise.runs.checkpoint.store import saved

SMALL = {"encoder": {"hidden": 8, "heads": 2, "layers": 1}}
KINDS = {
    "nodes": ("graphwalk", {}, {}),
    "nodes of one size": ("graphwalk", {}, {"encoder": {"kind": "mlp", "hidden": 8, "layers": 1}}),
    "maximal sets": ("queueing", {}, {"sets": "whole"}),
    "sets in turn": ("queueing", {}, {"sets": "in_turn"}),
    "groups of edges": ("multihop", {}, {}),
    "topologies": ("hex", {}, {}),
    "agents": ("swarm", {}, {}),
    "agents with numbers": ("swarm", {"continuous": True}, {}),
    "agents that sense the closest approach": ("swarm", {"edge_features": "approach"}, {}),
    "agents that embed edges": ("swarm", {}, {"encoder": {**SMALL["encoder"], "edge_hidden": 4}}),
    "agents with memory": ("swarm", {}, {"recurrent": True}),
    "a set of edges": ("hive", {}, {}),
}
"""Environment, its settings and those of the model for each kind of actor."""


def actor_of(name):
    """A small actor of a kind, and its environment."""
    torch.manual_seed(0)
    env_name, settings, model = KINDS[name]
    env = ew.make_env(env_name, num_envs=3, seed=0, **settings)
    config_class = plugins.environment(env_name).load("model") or ModelConfig
    actor = make_actor_critic(env.graph, env.actions, config_class(**{**SMALL, **model})).actor
    add_noise(actor)
    return actor.eval(), env


@pytest.mark.parametrize("name", KINDS)
def test_a_function_chooses_the_actions_of_its_policy(name):
    policy, env = actor_of(name)
    function = as_function(policy, env)
    for root in observations(policy, env):
        inputs = function.inputs_of(root)
        assert [info.name for info in function.inputs] == list(inputs)
        sizes = sizes_of(function, inputs)
        for info in function.inputs:
            assert inputs[info.name].dtype == info.dtype
            assert list(inputs[info.name].shape) == [sizes.get(size, size) for size in info.shape]
        with torch.no_grad():
            outputs = function(inputs)
        assert list(outputs) == list(function.outputs)
        assert torch.equal(decoded(function, inputs, outputs), function.actions_of(root))
        assert all(value.isfinite().all() for value in outputs.values())


@pytest.mark.parametrize("name", KINDS)
def test_a_function_takes_other_sizes(name):
    policy, env = actor_of(name)
    function = as_function(policy, env)
    for sizes in (traced_sizes(function), *other_sizes(function)):
        inputs = function.sample(sizes, torch.Generator().manual_seed(0))
        assert sizes_of(function, inputs) == sizes
        with torch.no_grad():
            outputs = function(inputs)
        first = next(iter(outputs.values()))
        assert len(first) == sizes["graphs"]
    traced, (smaller, larger) = traced_sizes(function), other_sizes(function)
    assert smaller["graphs"] == 1
    assert all(smaller[size] <= traced[size] < larger[size] for size in ("graphs", "nodes") if size in traced)
    assert ("nodes" in function.sizes) == (name != "nodes of one size")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_traced_for_any_size(name):
    policy, env = actor_of(name)
    function = as_function(policy, env)
    trace(function, function.sample(traced_sizes(function), torch.Generator().manual_seed(0)))


def test_topologies_become_edges():
    policy, env = actor_of("topologies")
    function = as_function(policy, env)
    assert {"edge_index", "edge_mask"} <= {info.name for info in function.inputs}
    inputs = function.inputs_of(env.reset())
    with torch.no_grad():
        before = function(inputs)["logits"]
        inputs["edge_mask"] = torch.zeros_like(inputs["edge_mask"])
        assert (function(inputs)["logits"] - before).abs().max() > 1e-3


def test_a_function_is_a_copy_of_the_networks():
    policy, env = actor_of("nodes")
    function, graph = as_function(policy, env), policy.encoder.graph
    inputs = function.inputs_of(env.reset())
    with torch.no_grad():
        before = function(inputs)["logits"]
        for weight in policy.parameters():
            weight.zero_()
        assert torch.equal(function(inputs)["logits"], before)
    assert policy.encoder.graph is graph


def test_hidden_states_pass_from_step_to_step():
    policy, env = actor_of("agents with memory")
    function = as_function(policy, env)
    assert dict(function.recurrent) == {"memory": "next_memory"}
    first, second = observations(policy, env)[:2]
    with torch.no_grad():
        outputs = function(function.inputs_of(first))
        given = function.inputs_of(second)
        assert torch.allclose(given["memory"], outputs["next_memory"], atol=1e-6)
        without = function({**given, "memory": torch.zeros_like(given["memory"])})
    assert (without["logits"] - function(given)["logits"]).abs().max() > 1e-4


@pytest.mark.parametrize("name", OFF_POLICY)
def test_every_agent_on_its_own_view_is_a_function(name):
    policy, env = policy_of(f"marine-{name}")
    function = as_function(policy, env)
    root = observations(policy, env)[0]
    with torch.no_grad():
        outputs = function(function.inputs_of(root))
    assert torch.equal(outputs["action"], function.actions_of(root))
    assert ("scores" in outputs) == (name in DISCRETE)
    if name in DISCRETE:
        assert outputs["scores"].std() > 1e-3


def value_policy(env_name):
    """A small DQN on graphs, and its environment."""
    settings = {"model": {"encoder": SMALL["encoder"], "hidden": 8}}
    config = load_config(env_name, algorithm="dqn", keywords=settings)
    policy = Builder(config, num_envs=1).algorithm.policy
    add_noise(policy)
    return policy, ew.make_env(env_name, num_envs=3, seed=0)


@pytest.mark.parametrize("env_name", ["graphwalk", "multihop", "hive"])
def test_value_networks_on_graphs_are_functions(env_name):
    policy, env = value_policy(env_name)
    with acting_in(policy, env):
        function, roots = as_function(policy, env), observations(policy, env)
        for root in roots:
            with torch.no_grad():
                outputs = function(function.inputs_of(root))
            assert torch.equal(outputs["action"], root["action"])
    assert policy._learner.deciders.graph is not function._learner.deciders.graph


def test_ragged_successors_are_a_function():
    policy, env = policy_of("reasoning-countries")
    function, changed = as_function(policy, env), False
    for root in observations(policy, env):
        inputs = function.inputs_of(root)
        with torch.no_grad():
            outputs = function(inputs)
            own = policy.get_dist(root)
        assert torch.equal(outputs["action"], root["action"])
        assert torch.allclose(outputs["logits"], own.logits[: len(outputs["logits"])], atol=1e-6)
        if (inputs["successor_matches"] > 0).any():
            given = {**inputs, "successor_matches": torch.zeros_like(inputs["successor_matches"])}
            with torch.no_grad():
                changed = changed or (function(given)["logits"] - outputs["logits"]).abs().max() > 1e-4
    assert changed


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    """An ONNX export of a checkpoint of a small run, made on the command line, and what it printed."""
    folder, printed = tmp_path_factory.mktemp("exported") / "walk", io.StringIO()
    options = ["--checkpoint", saved(trained.path / "checkpoints")[-1].name, "--json"]
    with redirect_stdout(printed):
        assert main(["export", str(trained.path), "--out", str(folder), *options]) == 0
    return folder, json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def walk(exported):
    """The folder of that export."""
    return exported[0]


def run_readme(folder):
    """Run the program of a README, and return what it prints and which modules it imported."""
    text = (folder / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    program += "\nimport sys\nprint(sorted({'torch', 'edgewise'} & set(sys.modules)))"
    command = [sys.executable, "-I", "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return program, done.stdout.splitlines()


def test_the_readme_runs_with_numpy_and_onnxruntime_alone(walk):
    program, (line, imported) = run_readme(walk)
    assert imported == "[]"
    assert len([each for each in program.splitlines() if each]) <= 10
    action, expected = re.fullmatch(r"action (\[.*\]) expected (\[.*\])", line).groups()
    assert action == expected


def test_the_signature_is_that_of_the_file(walk, trained):
    runtime = pytest.importorskip("onnxruntime")
    signature = json.loads((walk / "signature.json").read_text())
    session = runtime.InferenceSession(str(walk / "policy.onnx"))
    for entries, given in ((session.get_inputs(), "inputs"), (session.get_outputs(), "outputs")):
        assert [(each.name, each.shape) for each in entries] == [
            (each["name"], each["shape"]) for each in signature[given]
        ]
    assert signature["inputs"][0]["shape"] == ["graphs", "nodes", 2]
    assert signature["recipe"] == "graphwalk-ppo"
    assert {path.name for path in walk.iterdir()} == {
        "policy.onnx",
        "signature.json",
        "example.npz",
        "README.md",
    }
    assert b"/edgewise/" not in (walk / "policy.onnx").read_bytes()


def test_padding_of_an_onnx_file_has_no_effect(walk, trained):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(walk / "policy.onnx"))
    function = as_function(trained.policy().policy, trained.policy().env)
    given = as_arrays(
        function.sample({"graphs": 4, "nodes": 9, "edges": 30}, torch.Generator().manual_seed(3))
    )
    expected = session.run(None, given)[0]
    given["x"] = numpy.where(given["node_mask"][..., None], given["x"], numpy.float32("nan"))
    given["edge_index"] = numpy.where(given["edge_mask"][:, None], given["edge_index"], 8)
    assert numpy.array_equal(session.run(None, given)[0], expected)
    padded = {
        name: numpy.pad(value, [(0, 0), *[(0, 3)] * (value.ndim - 1)])[..., : 2 if name == "x" else None]
        for name, value in given.items()
        if name != "edge_index"
    }
    padded["edge_index"] = numpy.pad(given["edge_index"], [(0, 0), (0, 0), (0, 3)])
    assert numpy.allclose(session.run(None, padded)[0][:, :9], expected, atol=1e-6)


def test_a_folder_that_exists_is_refused(walk, trained, capsys):
    assert main(["export", str(trained.path), "--out", str(walk)]) == 2
    assert f"{walk} exists already" in capsys.readouterr().err


def test_a_checkpoint_that_does_not_exist_is_named(trained, tmp_path, capsys):
    assert main(["export", str(trained.path), "--out", str(tmp_path / "a"), "--checkpoint", "step-7"]) == 3
    names = ", ".join(each.name for each in saved(trained.path / "checkpoints"))
    assert f"has no checkpoint step-7; it has {names}" in capsys.readouterr().err


def test_what_the_command_prints(exported, trained):
    folder, found = exported
    signature = json.loads((folder / "signature.json").read_text())
    assert signature["checkpoint"] == saved(trained.path / "checkpoints")[-1].name
    assert found["largest_difference"] <= 1e-5
    traced = found["traced_sizes"]
    tried = [each["sizes"] for each in found["tried"]]
    assert any(all(each[name] < size for name, size in traced.items()) for each in tried)
    assert any(all(each[name] > size for name, size in traced.items()) for each in tried)
    assert found["microseconds_per_decision"].keys() == {"eager", "onnx"}
    assert found["actions"] > 0
    assert found["differing_actions"] == 0


def test_a_missing_package_is_named(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert main(["export", str(trained.path), "--out", str(tmp_path / "a")]) == 2
    error = capsys.readouterr().err
    assert "onnxscript is not installed" in error
    assert "pip install 'edgewise[export]'" in error
    assert not list(tmp_path.iterdir())


def test_a_policy_that_is_no_function_is_refused(tmp_path):
    env = ew.make_env("graphwalk", num_envs=3)
    with pytest.raises(ConfigError, match="cannot be exported: it is not a function of named tensors"):
        export_policy(lambda root: root, env, tmp_path / "a")


class Branching(torch.nn.Module):
    """A planted fault: a score that depends on the values of tensors in Python."""

    def forward(self, h):
        return h.sum(-1, keepdim=True) if bool(h.sum() > 0) else h.mean(-1, keepdim=True)


def test_a_policy_that_cannot_be_traced_is_refused_in_words(tmp_path):
    policy, env = actor_of("nodes of one size")
    policy.head.score = Branching()
    with pytest.raises(ConfigError, match=r"cannot be traced by torch\.export"):
        export_policy(policy, env, tmp_path / "a", format="pt2")
    assert not list(tmp_path.iterdir())


class Length(torch.nn.Module):
    """A score that is the length of a plane vector."""

    def forward(self, h):
        return torch.hypot(h[..., 0], h[..., 1]).unsqueeze(-1)


def test_lengths_of_vectors_can_be_written_as_onnx(tmp_path):
    policy, env = actor_of("nodes of one size")
    policy.head.score = Length()
    assert export_policy(policy, env, tmp_path / "a").checked.passed


def test_a_program_that_differs_is_refused(tmp_path, monkeypatch):
    """The planted fault: the program is that of other weights."""
    save = torch.export.save

    def spoilt(program, path):
        for value in program.state_dict.values():
            value.data += 0.1
        save(program, path)
        for value in program.state_dict.values():
            value.data -= 0.1

    policy, env = policy_of("marine-dqn")
    monkeypatch.setattr(torch.export, "save", spoilt)
    with pytest.raises(ConfigError, match="the program differs from the policy by"):
        export_policy(policy, env, tmp_path / "a", format="pt2")
    assert not list(tmp_path.iterdir())


def test_other_actions_of_the_policy_are_noticed(tmp_path):
    policy, env = policy_of("marine-dqn")
    export_policy(policy, env, tmp_path / "a", format="pt2")
    function, roots = as_function(policy, env), observations(policy, env)
    with pytest.raises(ConfigError, match=r"the program fails on self \[2, 3\]: "):
        call(load(tmp_path / "a" / "policy.pt2", ["action"]), {"self": torch.zeros(2, 3)}, numpy_in=False)
    assert check(function, roots, tmp_path / "a" / "policy.pt2").passed
    for root in roots:
        root["action"] = (root["action"] + 1) % env.actions.num_actions
    found = check(function, roots, tmp_path / "a" / "policy.pt2")
    assert isinstance(env.actions, AgentsDiscrete)
    assert found.differing_actions == found.actions
    assert not found.passed


def test_a_set_of_nodes_that_is_as_good_is_no_other_action():
    logits = torch.tensor([[1.0, 2.0, 3.0, -9.0], [1.0, 2.0, 3.5, -9.0]])
    own = torch.tensor([[False, False, True, False]]).expand(2, -1)
    other = torch.tensor([[True, True, False, False]]).expand(2, -1)
    assert _count_differing(other[:1], own[:1], {"logits": logits[:1]}) == 0
    assert _count_differing(other, own, {"logits": logits}) == 3
    assert _count_differing(other, other, {"logits": logits}) == 0


@pytest.mark.parametrize(
    ("difference", "differing", "passed"),
    [(9e-6, 0, True), (2e-5, 0, False), (0.0, 1, False), (inf, 0, False)],
)
def test_what_passes(difference, differing, passed):
    tried = (Tried({"graphs": 1}, 0.0), Tried({"graphs": 7}, difference))
    assert Checked(tried, 12, differing).passed == passed


def test_decoding_is_part_of_the_program_of_a_readme():
    policy, env = actor_of("maximal sets")
    text = program_text(as_function(policy, env), "policy.onnx")
    assert "def best_maximal_set(" in text
    assert "best_maximal_set(inputs, outputs)" in text


@pytest.mark.thorough
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("recipe", list(plugins.recipes()))
def test_a_policy_of_every_recipe(recipe, format, tmp_path):
    policy, env = policy_of(recipe)
    found = export_policy(policy, env, tmp_path / "a", format=format)
    assert found.checked.passed
    if format == "onnx":
        _, (line, imported) = run_readme(tmp_path / "a")
        assert imported == "[]"
        action, expected = re.fullmatch(r"action (\[.*\]) expected (\[.*\])", line).groups()
        assert numpy.allclose(json.loads(action.lower()), json.loads(expected.lower()), atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("env_name", ["graphwalk", "multihop", "hive"])
def test_value_networks_as_onnx(env_name, tmp_path):
    policy, env = value_policy(env_name)
    assert export_policy(policy, env, tmp_path / "a").checked.passed


@pytest.mark.thorough
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_as_onnx(name, tmp_path):
    policy, env = actor_of(name)
    assert export_policy(policy, env, tmp_path / "a").checked.passed
