"""Parts are built from a config alone: reproducibly, with separate random streams, or refused."""

from dataclasses import replace

import pytest
import torch

from edgewise.config.errors import ConfigError, IllegalActionError
from edgewise.config.seeds import derive_seed
from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.instances import Instances
from edgewise.experiments.build import Builder
from edgewise.experiments.check import check_recipe
from edgewise.experiments.launch import next_folder
from edgewise.experiments.load import load_config
from edgewise.experiments.recipes import recipe
from edgewise.experiments.sizes import sizes
from edgewise.models.actor_critic import make_actor_critic
from edgewise.plugins import environment, recipes
from edgewise.scale.devices import check_device


@pytest.fixture
def config(small):
    return load_config("graphwalk-ppo", keywords=small)


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_builds_learns_and_evaluates(name, monkeypatch):
    monkeypatch.setattr("edgewise.experiments.check.LONGEST", 12)
    check_recipe(_with_few_updates(_with_data_that_is_here(recipe(name))).config)


def _with_few_updates(found):
    """The recipe with small minibatches, each of them once."""
    few = {"updates": 1, "epochs": 1, "minibatch_size": 32}
    known = {field: value for field, value in few.items() if hasattr(found.config.algorithm, field)}
    algorithm = found.config.algorithm.model_copy(update=known)
    return replace(found, algorithm=algorithm)


def _with_data_that_is_here(found):
    """The recipe on a dataset of the package, where its own must be fetched first."""
    if getattr(found.config.env, "data", "countries").startswith("countries"):
        return found
    env = found.config.env.model_copy(update={"data": "countries_s2", "rules": None})
    return replace(found, env=env)


def test_the_same_config_builds_the_same_run(config):
    first, second = Builder(config).parts(), Builder(config).parts()
    torch.manual_seed(0)
    one = first.rollout.collect()
    torch.manual_seed(0)
    assert (one == second.rollout.collect()).all()
    other = Builder(config.model_copy(update={"seed": 1})).parts()
    weights = [next(parts.algorithm.policy.parameters()) for parts in (first, other)]
    assert not torch.equal(*weights)


def test_building_the_evaluation_leaves_training_alone(config):
    more = config.model_copy(update={"evaluation": config.evaluation.model_copy(update={"episodes": 9})})
    batches = [Builder(each).parts().rollout.collect()["graph", "x"] for each in (config, more)]
    assert torch.equal(*batches)


def test_streams_differ_by_name_and_seed():
    seeds = {derive_seed(seed, name) for seed in range(50) for name in ("env", "model", "algorithm")}
    assert len(seeds) == 150
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_instances_are_fixed_whatever_the_stage(config):
    parts = Builder(config).parts()
    before = parts.evaluate(parts.algorithm.policy).returns
    parts.env.apply_stage(num_nodes=[4, 5])
    parts.rollout.collect()
    assert (parts.evaluate(parts.algorithm.policy).returns == before).all()


def test_evaluation_settings_reach_the_instances(small):
    changed = {**small, "evaluation": {"episodes": 3, "settings": {"num_nodes": 30, "max_steps": 2}}}
    config = load_config("graphwalk-ppo", keywords=changed)
    found = (
        Builder(config)
        .parts()
        .evaluate(lambda root: root.set("action", root["action_mask"].int().argmax(-1)))
    )
    assert found.episodes == 3
    assert found.lengths.max() <= 2
    assert found.settings == {"num_nodes": 30, "max_steps": 2}


def test_kinds_of_instances_are_worlds_of_the_environment_that_plays_them():
    """A graph's number is its place among all of them, not among those of its kind."""
    stages = [{"name": name, "episodes": 2, "settings": {"graphs": [name]}} for name in ("line6", "ring6")]
    graphs = {"graphs": ["line3", "line6", "ring6"]}
    config = load_config(
        "queueing-family-ppo", keywords={"env": graphs, "evaluation": {"settings": graphs, "stages": stages}}
    )
    assert Builder(config).instances.start["conflict_graph"].tolist() == [1, 1, 2, 2]


def test_kinds_of_instances_cannot_change_what_no_world_carries(small):
    stages = [{"name": "short", "episodes": 2, "settings": {"max_steps": 2}}]
    config = load_config("graphwalk-ppo", keywords={**small, "evaluation": {"stages": stages}})
    with pytest.raises(ConfigError, match=r"evaluation\.stages\.0\.settings \(stage short\): .* max_steps"):
        Builder(config).instances  # noqa: B018


def test_a_stage_that_cannot_be_is_refused_before_training(small):
    grown = {"name": "grown", "env": {"num_nodes": 99}}
    changed = {**small, "training": {**small["training"], "curriculum": [grown]}}
    with pytest.raises(ConfigError, match=r"training.curriculum.0.env \(stage grown\)"):
        Builder(load_config("graphwalk-ppo", keywords=changed)).parts()


def test_checking_the_stages_begins_none_of_them(small):
    stages = [
        {"name": "a", "env": {"num_nodes": 4}, "until": {"frames": 9}},
        {"name": "b", "env": {"num_nodes": 5}},
    ]
    changed = {**small, "training": {**small["training"], "curriculum": stages}}
    env = Builder(load_config("graphwalk-ppo", keywords=changed)).parts().env
    assert env.config == env.built_with


def test_a_baseline_that_is_not_there(config):
    changed = config.evaluation.model_copy(update={"baselines": ("oracle",)})
    with pytest.raises(ConfigError, match="no baseline oracle"):
        Builder(config.model_copy(update={"evaluation": changed})).parts()


def test_a_device_that_is_not_there():
    check_device("cpu")
    with pytest.raises(ConfigError, match="cuda:97"):
        check_device("cuda:97")


def test_sizes_count_what_is_there(config):
    parts = Builder(config).parts()
    found = sizes(config)
    batch = parts.rollout.collect()
    counted = sum(value.numel() * value.element_size() for value in batch.values(True, True))
    assert found["bytes_per_rollout"] == counted
    modules = parts.algorithm.policy, parts.algorithm.actor_critic.critic
    each = {parameter for module in modules for parameter in module.parameters()}
    assert found["parameters"] == sum(parameter.numel() for parameter in each)
    assert found["batches"] == 3


def test_run_folders_are_numbered(tmp_path):
    assert next_folder("walk", within=tmp_path).name == "walk-1"
    (tmp_path / "walk-1").mkdir()
    assert next_folder("walk", within=tmp_path).name == "walk-2"


def test_an_actor_sees_the_instances_own_graphs_and_then_its_own_again():
    """A topology id means another graph in another environment; at home it gives illegal actions."""
    trained = make_actor_critic_of("queueing", graphs=["ring6"]).actor
    born_there = make_actor_critic_of("queueing", graphs=["line8"]).actor
    born_there.load_state_dict(trained.state_dict())
    config = environment("queueing").load("config")(max_steps=50)
    settings = {"graphs": ["line8"]}
    instances = Instances.make(environment("queueing"), config, episodes=8, seed=3, settings=settings)
    home = trained.encoder.graph
    assert instances(trained).returns.tolist() == instances(born_there).returns.tolist()
    assert trained.encoder.graph is home
    with pytest.raises(IllegalActionError, match="queueing"):
        evaluate(instances.env, trained, episodes=8, seed=3)


def make_actor_critic_of(name, **settings):
    env = make_env(name, **settings)
    torch.manual_seed(0)
    return make_actor_critic(env.graph, env.actions)


def test_an_odd_number_of_games_is_refused_in_words():
    config = load_config("hex-quick", keywords={"evaluation.episodes": 5})
    with pytest.raises(ConfigError, match=r"evaluation\.episodes: got 5, expected an even number"):
        Builder(config, num_envs=2).parts()


@pytest.mark.parametrize("size", [2, 5])
def test_self_play_is_evaluated_on_boards_of_other_sizes_than_trained(size):
    settings = {"evaluation.episodes": 4, "evaluation.settings": {"size": size, "opening_plies": 1}}
    parts = Builder(load_config("hex-quick", keywords=settings), num_envs=2, rollout_length=2).parts()
    result = parts.evaluate(parts.algorithm.policy)
    assert result.episodes == 4
    assert any(name.startswith("score_") for name in result.metrics)


def test_quick_baselines_are_those_that_are_not_declared_as_slow():
    """Runs without a recipe evaluate them, and none that searches."""
    config = load_config("hex", algorithm="dqn")
    assert config.evaluation.baselines == ("quick",)
    quick, slow = Builder(config, num_envs=2, episodes=2).baselines, environment("hex").slow_baselines
    everything = set(environment("hex").load_baselines())
    assert set(quick) == everything - set(slow)
    assert {"random", "shortest_way"} <= set(quick)
    assert {"mcts", "monte_carlo"} <= set(slow) <= everything | {"open_spiel"}
    assert set(Builder(config).instances.baselines(("all",))) == everything
