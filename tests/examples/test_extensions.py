"""Encoder, convolution, algorithm, recipes, verb, logger and callback of the examples work."""

import json
import shutil
import sys

import pytest
import torch
from tests.isolation import isolated

import edgewise as ew
from edgewise.cli.main import main

FLAGS = [
    *("--total-frames", "96", "--num-envs", "4", "--rollout-length", "8", "--hidden", "8", "--heads", "2"),
    *("--layers", "1", "--evaluation.every", "none", "--evaluation.episodes", "4", "--tensorboard", "false"),
    *("--checkpoint.every", "40"),
]


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize(
    ("chosen", "plugin"),
    [
        ({"kind": "encoder.py:DeepSets"}, "encoder.py"),
        ({"kind": "gnn", "conv": "convolution.py:MaxConv"}, "convolution.py"),
    ],
)
def test_own_encoder_and_convolution(tsp, small, tmp_path, chosen, plugin):
    settings = small | {"model": {"encoder": small["model"]["encoder"] | chosen}}
    run = ew.train("tsp.py", folder=tmp_path / "run", progress=False, **settings)
    encoder = run.policy().policy.encoder
    parts = [type(part).__name__ for part in encoder.modules()]
    assert plugin == "encoder.py" or "MaxConv" in parts
    assert plugin == "convolution.py" or parts[0] == "DeepSets"
    assert any(plugin in record["file"] for record in json.loads((run / "code.json").read_text()))
    assert run.evaluate(num_cities=7, episodes=3).summary()["tour"].estimate > 0
    with isolated(), pytest.raises(ew.ConfigError, match="neither a run folder nor a config file"):
        ew.load_policy(run, plugins=["tsp.py"])
    with isolated():
        policy = ew.load_policy(run, plugins=["tsp.py", plugin], num_cities=9)
        assert policy.act(policy.env.reset()).shape == (1,)


def test_padding_is_silent_in_the_own_encoder(tsp):
    from edgewise.plugins import use_plugin

    encoder_class = use_plugin("encoder.py").DeepSets
    env = ew.make_env("tsp.py", num_envs=3, seed=0, num_cities=(4, 9))
    graph = env.reset()["graph"]
    encoder = encoder_class(env.graph, ew.EncoderConfig(hidden=8, layers=2))
    h = encoder(graph)
    noisy = graph.clone()
    noisy["x"][~graph["node_mask"]] = 7.0
    assert torch.equal(h, encoder(noisy))
    assert not h[~graph["node_mask"]].any()
    order = torch.randperm(9)
    permuted = graph.clone()
    for name in ("x", "pos", "node_mask"):
        permuted[name] = graph[name][:, order]
    torch.testing.assert_close(encoder(permuted), h[:, order])


def test_own_algorithm_resumes_bit_for_bit(tsp, small, tmp_path):
    arguments = {"algorithm": "reinforce.py:Reinforce", "progress": False, **small}
    whole = ew.train("tsp.py", folder=tmp_path / "whole", **arguments)
    part = ew.train(
        "tsp.py",
        folder=tmp_path / "part",
        **arguments | {"training": small["training"] | {"total_frames": 64}},
    )
    part.resume(total_frames=96)
    one, other = (run.policy(checkpoint="latest").state_dict() for run in (whole, part))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (whole.metrics["frames"] == part.metrics["frames"]).all()
    assert config_of(tmp_path / "whole")["algorithm"] == {"learning_rate": 1e-3, "entropy_coefficient": 0.01}


def test_own_algorithm_knows_where_episodes_end(tsp):
    from edgewise.plugins import use_plugin

    returns_to_go = use_plugin("reinforce.py").returns_to_go
    reward = torch.tensor([[1.0, 2.0, 4.0, 8.0]]).unsqueeze(-1)
    done = torch.tensor([[False, True, False, False]]).unsqueeze(-1)
    returns, is_known = returns_to_go(reward, done)
    assert returns.flatten().tolist() == [3, 2, 12, 8]
    assert is_known.flatten().tolist() == [True, True, False, False]


def test_own_recipe_in_python(tsp, tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(["train", "tsp-small", "--plugin", "recipe.py", *FLAGS, "--out", str(folder)]) == 0
    config = config_of(folder)
    assert (config["recipe"], config["env_name"], config["env"]["num_cities"]) == (
        "tsp-small",
        "salesman",
        10,
    )
    with isolated():
        assert main(["recipes", "--plugin", "recipe.py"]) == 0
    assert "tsp-small" in capsys.readouterr().out
    with isolated():
        words = ["eval", str(folder), "--plugin", "recipe.py", "--episodes", "2", "--num-cities", "5"]
        assert main(words) == 0


@pytest.mark.parametrize("source", ["recipe.py", "recipe.py:RECIPE"])
def test_own_recipe_by_its_file(tsp, capsys, source):
    assert main(["train", source, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["config"]["name"] == "tsp-small"


@pytest.mark.parametrize("file", ["tsp20.yaml", "tsp20_pomo.yaml"])
def test_own_recipe_in_yaml(tsp, tmp_path, capsys, file):
    folder = tmp_path / "run"
    arguments = ["train", file, "--num-cities", "6", *FLAGS, "--out", str(folder)]
    assert main(arguments) == 2
    assert "--plugin" in capsys.readouterr().err
    assert main([*arguments, "--plugin", "tsp.py"]) == 0
    config = config_of(folder)
    assert (config["algorithm"]["gamma"], config["env"]["num_cities"]) == (1.0, 6)


def test_own_verb(tsp, small, tmp_path, capsys):
    run = ew.train("tsp.py", folder=tmp_path / "run", progress=False, **small)
    capsys.readouterr()
    with isolated():
        plugins = ["--plugin", "tour.py", "--plugin", "tsp.py"]
        assert main(["salesman", "tour", str(run), "--cities", "7", "--json", *plugins]) == 0
        planned = json.loads(capsys.readouterr().out)
        assert sorted(planned["tour"]) == list(range(7))
        assert main(["--help", *plugins]) == 0
        assert "salesman" in capsys.readouterr().out
        assert main(["salesman", *plugins]) == 0
        assert "plan one tour with a trained policy" in capsys.readouterr().out


def test_own_logger_and_callback(tsp, small, tmp_path):
    from edgewise.plugins import use_plugin

    module = use_plugin("callbacks.py")
    settings = small | {"evaluation": {"every": 32, "episodes": 4}}
    run = ew.train(
        "tsp.py",
        folder=tmp_path / "run",
        progress=False,
        callbacks=[module.TextLogger(), module.StopBelow(100.0)],
        **settings,
    )
    lines = (run / "tours.txt").read_text().splitlines()
    assert 1 <= len(lines) <= 2
    assert run.metrics["frames"].max() < 96
    frames, tour = lines[-1].split()
    assert float(tour) == pytest.approx(run.metrics["evaluation/tour"][-1], abs=1e-3)
    assert int(frames) == run.metrics["frames"][-1]


def test_own_logger_on_the_command_line(tsp, tmp_path):
    folder = tmp_path / "run"
    assert main(["train", "tsp.py", *FLAGS, "--logger", "callbacks.py:TextLogger", "--out", str(folder)]) == 0
    assert (folder / "tours.txt").read_text().splitlines()[-1].startswith("96 ")


def test_changed_code_is_noticed(tsp, small, tmp_path, monkeypatch):
    """In a folder of its own, in which tsp.py is then changed."""
    shutil.copy(tsp / "tsp.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    run = ew.train("tsp.py", folder=tmp_path / "run", progress=False, **small)
    with (tmp_path / "tsp.py").open("a") as file:
        file.write("# a change\n")
    with isolated(), pytest.raises(ew.CheckpointError, match="has changed since the run began"):
        ew.open_run(run, plugins=["tsp.py"]).resume(total_frames=128)
    with isolated():
        ew.open_run(run, plugins=["tsp.py"]).resume(total_frames=128, accept_changed_code=True)


def test_the_measurement_says_what_it_lacks(tsp, monkeypatch, capsys):
    from edgewise.plugins import use_plugin

    monkeypatch.setitem(sys.modules, "elkai", None)
    monkeypatch.setattr(sys, "argv", ["measure.py"])
    assert use_plugin("measure.py").main() == 0
    assert "pip install elkai" in capsys.readouterr().err
