"""An instance that is encoded again in every step: only what is left matters."""

import pytest
import torch
from torchrl.envs import ExplorationType, set_exploration_type

import edgewise as ew
from edgewise.cli.main import main
from edgewise.data.episodes import EpisodeRollout
from edgewise.data.random_policy import RandomPolicy
from edgewise.envs.policy import encode_once
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.models.actor_critic import make_actor_critic

PROBLEMS = {
    "tsp": {"num_cities": (4, 7)},
    "cvrp": {"num_customers": (3, 6)},
    "vertex_cover": {"num_nodes": (6, 9)},
    "max_cut": {"num_nodes": (6, 8)},
    "job_shop": {"num_jobs": 3, "num_machines": 2},
}


def model_of(env, *, reencode=True):
    torch.manual_seed(0)
    encoder = ew.EncoderConfig(hidden=16, layers=2, heads=2)
    return make_actor_critic(env.graph, env.actions, ew.ModelConfig(encoder=encoder, reencode=reencode))


def after(env, steps):
    """Roots after some random steps."""
    root, policy = env.new_worlds(6), RandomPolicy(env.actions, env.graph, seed=0)
    for _ in range(steps):
        acted = policy(root.copy())
        following = env.simulate(acted)
        names = [name for name in root.keys() if name in following.keys()]  # noqa: SIM118
        root = following.select(*names)
    return root


@pytest.mark.parametrize("name", PROBLEMS)
def test_batches_of_instances_are_steps_with_their_graphs(name):
    env = ew.make_env(name, num_envs=6, seed=0, **PROBLEMS[name])
    model = model_of(env)
    batch = EpisodeRollout(env, model.actor, starts=3, keep_next=True).collect()
    steps, counted = batch["steps"], batch["steps", "counted"]
    graph = batch["graph"].unsqueeze(1).expand(*steps.batch_size)
    single = steps.copy().set("graph", graph)[counted]
    with torch.no_grad():
        both = model.evaluate(batch), model.evaluate(single)
        alone = model.critic(single.copy())["state_value"]
    found, expected = (each[0].log_prob(of["action"]) for each, of in zip(both, (steps, single), strict=True))
    torch.testing.assert_close(found[counted], expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both[0][1][counted], both[1][1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alone, both[1][1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reencode", [True, False])
def test_nodes_that_are_gone_do_not_matter(reencode):
    env = ew.make_env("tsp", num_envs=6, seed=0, num_cities=7)
    actor = model_of(env, reencode=reencode).actor
    root = after(env, 4)
    gone = root["graph", "node_mask"] & ~root["action_mask"]
    for name in ("first", "current"):
        gone = gone.scatter(1, root["step", "nodes", name].unsqueeze(-1), False)
    assert bool((gone.sum(-1) == 2).all())
    moved = root.clone()
    for name in ("x", "pos"):
        moved["graph", name][gone] = torch.rand(int(gone.sum()), 2)
    with torch.no_grad():
        same = torch.allclose(actor.get_dist(root).logits, actor.get_dist(moved).logits, atol=1e-5)
    assert same == reencode


def test_edges_of_nodes_that_are_gone_are_gone():
    env = ew.make_env("vertex_cover", num_envs=6, seed=0, num_nodes=9)
    actor = model_of(env).actor
    root = after(env, 2)
    graph, _ = actor.remaining.of(root)
    ends = graph["node_mask"].gather(1, graph["edge_index"].flatten(1)).unflatten(1, (2, -1))
    assert bool(ends.all(1)[graph["edge_mask"]].all())
    assert int(graph["edge_mask"].sum()) < int(root["graph", "edge_mask"].sum())
    assert torch.equal(graph["node_mask"], root["action_mask"] & root["graph", "node_mask"])


def test_it_acts_on_instances_as_step_by_step():
    env = ew.make_env("cvrp", num_envs=6, seed=0, num_customers=5)
    actor = model_of(env).actor
    policy, root = encode_once(actor, env.new_worlds(6))
    assert policy is actor
    with set_exploration_type(ExplorationType.DETERMINISTIC), torch.no_grad():
        assert bool(actor(root.copy())["action_mask"].gather(1, actor(root.copy())["action"][:, None]).all())


@pytest.mark.parametrize("algorithm", ["reinforce", "ppo"])
def test_it_learns_and_resumes(algorithm):
    keywords = {
        "num_cities": 5,
        "num_envs": 8,
        "rollout_length": 1,
        "reencode": True,
        "model.encoder.hidden": 16,
    }
    first, second = (Builder(load_config("tsp", algorithm=algorithm, keywords=keywords)) for _ in range(2))
    first.algorithm.learn(first.collector.collect())
    second.algorithm.load_state_dict(first.algorithm.state_dict())
    second.collector.load_state_dict(first.collector.state_dict())
    found = []
    for each in (first, second):
        torch.manual_seed(5)
        found.append(each.algorithm.learn(each.collector.collect()))
    assert {name: float(value) for name, value in found[0].items()} == {
        name: float(value) for name, value in found[1].items()
    }


def test_it_is_searched_exported_and_evaluated_on_other_sizes(tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "run"
    short = ["--num-cities", "5", "--num-envs", "8", "--total-frames", "80", "--evaluation.episodes", "4"]
    small = ["--reencode", "true", "--model.encoder.hidden", "16", "--model.encoder.layers", "1"]
    assert main(["train", "tsp", "--algorithm", "ppo", *short, *small, "--out", str(folder)]) == 0
    assert main(["eval", str(folder), "--num-cities", "9", "--episodes", "4", "--decode", "search:4"]) == 0
    assert main(["export", str(folder), "--out", str(tmp_path / "onnx")]) == 0
    assert main(["eval", str(folder), "--episodes", "4", "--decode", "active:2"]) == 2
    assert "needs an environment with `describe`" in capsys.readouterr().err
