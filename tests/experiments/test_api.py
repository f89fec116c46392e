"""The public names do what the design says, as written there."""

import json

import numpy as np
import pytest
import torch
from torchrl.envs import EnvBase, ExplorationType, set_exploration_type

import edgewise as ew


def test_every_public_name_is_there():
    for name in ew.__all__:
        assert getattr(ew, name) is not None
    assert set(ew.__all__) <= set(dir(ew))
    with pytest.raises(AttributeError, match="no name 'nothing'"):
        ew.nothing  # noqa: B018


def test_make_and_check_an_environment():
    env = ew.make_env("graphwalk", num_envs=6, seed=0, num_nodes=7)
    assert isinstance(env, EnvBase)
    assert env.batch_size == torch.Size([6])
    ew.check_graph_env(env)


def test_advantages_from_any_critic():
    env = ew.make_env("graphwalk", num_envs=3, seed=0)

    class Critic(torch.nn.Module):
        in_keys, out_keys = ("graph",), ("state_value",)

        def forward(self, tensordict):
            return tensordict.set("state_value", tensordict["graph", "x"].mean((-1, -2)).unsqueeze(-1))

    gae = ew.GraphGAE(value_network=Critic(), gamma=0.99, lmbda=0.95)
    batch = gae(env.rollout(5, env.rand_action, break_when_any_done=False))
    assert batch["advantage"].shape == batch["value_target"].shape == (3, 5, 1)


def test_train_makes_a_run_folder(trained):
    assert {"config.json", "metrics.csv", "checkpoints", "report.html"} <= {
        path.name for path in trained.path.iterdir()
    }
    assert json.loads((trained / "config.json").read_text())["training"]["total_frames"] == 96


def test_train_takes_a_config_a_file_and_short_names(tmp_path, small, trained):
    file = tmp_path / "mine.json"
    file.write_text((trained / "config.json").read_text())
    run = ew.train(file, folder=tmp_path / "run", total_frames=32)
    assert json.loads((run / "config.json").read_text())["training"]["total_frames"] == 32
    with pytest.raises(ew.ConfigError, match="total_frmes"):
        ew.train("graphwalk-ppo", total_frmes=3)


def test_evaluate_at_another_size(trained):
    found = ew.evaluate(trained, num_nodes=15, episodes=7)
    assert found.episodes == 7
    assert found.settings["num_nodes"] == 15
    assert found.frames == 96
    again = ew.evaluate(str(trained), num_nodes=15, episodes=7)
    assert np.array_equal(found.returns, again.returns)
    with pytest.raises(ew.ConfigError, match="num_node"):
        ew.evaluate(trained, num_node=15)
    with pytest.raises(ew.ConfigError, match="best or latest"):
        ew.evaluate(trained, checkpoint="worst")
    with pytest.raises(ew.ConfigError, match="episodes: got 0"):
        ew.evaluate(trained, episodes=0)


def test_a_loaded_policy_acts_as_it_was_trained(trained):
    policy = ew.load_policy(trained)
    env = ew.make_env("graphwalk", num_envs=50, seed=3, num_nodes=(8, 20), extra_edges=3)
    with set_exploration_type(ExplorationType.DETERMINISTIC), torch.no_grad():
        first = policy(env.reset())["action"]
        checkpoints = sorted((trained / "checkpoints").glob("step-*"))
        named = ew.load_policy(checkpoints[-1])
        env.set_seed(3)
        assert torch.equal(first, named(env.reset())["action"])
        env.set_seed(3)
        early = ew.load_policy(checkpoints[0], num_nodes=20)
    weights = [next(module.parameters()) for module in (policy, early)]
    assert not torch.equal(*weights)


def test_a_policy_is_loaded_without_unpickling(trained, monkeypatch):
    import pickle

    def refuse(*_, **__):
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    ew.load_policy(trained)


def test_what_is_no_run_is_refused(tmp_path, trained):
    with pytest.raises(ew.DataError, match="not a run folder"):
        ew.load_policy(tmp_path)
    with pytest.raises(ew.CheckpointError):
        ew.load_policy(trained / "checkpoints" / "step-000000000001")
