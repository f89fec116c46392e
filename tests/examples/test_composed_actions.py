"""The examples with composed actions: short, in contract, and trained, exported and shown as any other."""

import pytest

import edgewise as ew
from edgewise.cli.main import main

FILES = {"capacity": "capacity/capacity.py", "outbreak": "outbreak/outbreak.py"}
SMALL = {
    "num_envs": 8,
    "rollout_length": 8,
    "total_frames": 128,
    "minibatch_size": 32,
    "model.encoder": {"hidden": 8, "heads": 2, "layers": 1},
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_at_most_90_lines_keeps_the_contract(examples, name):
    path = examples / FILES[name]
    assert len(path.read_text().splitlines()) <= 90
    env = ew.make_env(str(path), num_envs=3, seed=0)
    ew.check_graph_env(env)
    for fix in type(env.config).model_fields["fix"].annotation.__args__:
        ew.check_graph_env(ew.make_env(str(path), num_envs=3, seed=0, fix=fix))


@pytest.mark.parametrize("method", ["ppo", "sac"])
@pytest.mark.parametrize("name", FILES)
def test_it_is_trained_exported_and_shown(examples, name, method, tmp_path, capsys):
    path, run = str(examples / FILES[name]), tmp_path / "run"
    extra = {"learning_starts": 32} if method == "sac" else {}
    trained = ew.train(path, algorithm=method, folder=run, progress=False, **SMALL, **extra)
    assert trained.evaluate(episodes=4, baselines="all").returns.shape == (4,)
    assert (run / "report.html").exists()
    assert list((run / "replays").glob("*"))
    capsys.readouterr()
    assert main(["export", str(run), "--out", str(tmp_path / "onnx"), "--plugin", path]) == 0
    assert (tmp_path / "onnx" / "policy.onnx").exists()
