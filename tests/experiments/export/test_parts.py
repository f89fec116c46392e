"""Policies that encode an instance once are also written as two programs, for callers who keep embeddings."""

import json

import numpy
import pytest
import torch
from benchmarks.export import add_noise
from torchrl.envs.utils import ExplorationType, set_exploration_type

import edgewise as ew
from edgewise.experiments.export import as_function, export_policy
from edgewise.experiments.export.check import as_arrays, check_parts, observations
from edgewise.experiments.export.program import load
from edgewise.models.actor_critic import make_actor_critic

MODEL = ew.ModelConfig(encoder=ew.EncoderConfig(hidden=8, layers=1, heads=2))
PROBLEMS = {
    "tsp": {"num_cities": 6},
    "job_shop": {"num_jobs": 3, "num_machines": 2},
}


def actor_of(name):
    env = ew.make_env(name, num_envs=3, seed=0, **PROBLEMS[name])
    torch.manual_seed(0)
    actor = make_actor_critic(env.graph, env.actions, MODEL).actor
    add_noise(actor)
    return actor.eval(), env


@pytest.fixture(scope="module", params=PROBLEMS)
def written(request, tmp_path_factory):
    """A policy of every kind of decoder, its environment, and the files that were written of it."""
    pytest.importorskip("onnxruntime")
    actor, env = actor_of(request.param)
    folder = tmp_path_factory.mktemp("parts") / "out"
    return actor, env, export_policy(actor, env, folder)


def test_a_whole_episode_from_one_encoding(written):
    actor, env, found = written
    assert set(found.files) > {"policy.onnx", "encoder.onnx", "decoder.onnx"}
    parts = as_function(actor, env).parts()
    assert not [info.name for info in parts["encoder"].inputs if info.name.startswith("step")]
    names = {info.name for info in parts["decoder"].inputs}
    assert {"embeddings", "node_mask"} <= names
    assert names.isdisjoint({"x", "edge_index", "edge_attr"})
    encoder, decoder = (
        load(found.folder / f"{each}.onnx", list(parts[each].outputs)) for each in ("encoder", "decoder")
    )
    root, compared = env.reset(), 0
    kept = encoder(as_arrays(parts["encoder"].inputs_of(root)))
    while not root["done"].any():
        with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
            own = actor(root.clone())["action"]
        inputs = as_arrays(parts["decoder"].inputs_of(root)) | kept
        chosen = torch.from_numpy(decoder(inputs)["action"])
        assert chosen.equal(own)
        compared += len(chosen)
        root = env.step(root.set("action", own))["next"]
    assert compared >= 9


def test_the_signature_the_example_and_the_readme_tell_of_both(written):
    folder = written[2].folder
    parts = json.loads((folder / "signature.json").read_text())["parts"]
    assert [each["file"] for each in parts.values()] == ["encoder.onnx", "decoder.onnx"]
    assert [each["name"] for each in parts["encoder"]["outputs"]] == ["embeddings"]
    assert parts["encoder"]["outputs"][0]["shape"] == ["graphs", "nodes", 8]
    example = numpy.load(folder / "example.npz")
    assert {entry["name"] for entry in parts["encoder"]["inputs"]} <= set(example)
    assert "give its `embeddings` to the second in every step" in (folder / "README.md").read_text()


def test_programs_that_are_not_the_policy_are_noticed(written):
    actor, env, found = written
    function, roots = as_function(actor, env).eval(), observations(actor, env)
    paths = {name: found.folder / f"{name}.onnx" for name in ("encoder", "decoder")}
    right = check_parts(function, function.parts(), roots, paths)
    add_noise(function.actor.decoder)
    wrong = check_parts(function, function.parts(), roots, paths)
    assert max(each.difference for each in right) < 1e-5
    assert max(each.difference for each in wrong) > 1e-2


def test_other_policies_have_no_parts():
    env = ew.make_env("graphwalk", num_envs=3, seed=0)
    actor = make_actor_critic(env.graph, env.actions, MODEL).actor
    assert not as_function(actor, env).parts()
