"""Runs take folders of their own, and a run from given weights is saved before it is trained."""

import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.experiments import launch
from edgewise.experiments.evaluate import load_trained
from edgewise.experiments.load import load_config
from edgewise.report.metrics_table import read_metrics

SMALL = {
    "total_frames": 64,
    "num_envs": 4,
    "rollout_length": 8,
    "evaluation.episodes": 4,
    "algorithm.replay_size": 256,
    "algorithm.learning_starts": 0,
    "model.hidden": 8,
    "model.encoder.hidden": 8,
    "model.encoder.layers": 1,
    "logging.tensorboard": False,
}


def test_a_folder_that_somebody_else_takes_first_gives_way_to_the_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config("graphwalk-ppo")
    taken = launch.create_folder(config, None).path
    real, late = launch.next_folder, [taken]
    monkeypatch.setattr(launch, "next_folder", lambda name: late.pop() if late else real(name))
    assert launch.create_folder(config, None).path.name == "graphwalk-ppo-2"
    assert not late


@pytest.fixture
def config():
    return load_config("graphwalk", algorithm="dqn", keywords=SMALL)


def test_a_run_from_weights_is_evaluated_and_goes_on_from_them(config, tmp_path):
    """The given bias is in the networks and their targets; the other weights are the initial ones."""
    bias = torch.tensor([0.625])
    run = launch.start_from(config, {"network.choices.bias": bias}, folder=tmp_path / "run")
    trained = load_trained(run)
    state = trained.algorithm.state_dict()
    fresh = launch.make_parts(config).algorithm.state_dict()
    assert trained.frames == 0
    for section in ("networks", "targets"):
        for name, value in state[section].items():
            given = name == "network.choices.bias"
            assert torch.equal(value, bias if given else fresh[section][name])
    assert len(read_metrics(run / "metrics.csv").columns["evaluation/return"]) == 1
    assert (run / "report.html").is_file()
    launch.resume(run)
    assert load_trained(run, which="latest").frames == 64


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"network.choices.bias": torch.zeros(3)}, r"got shape \[3\], but the network has shape \[1\]"),
        ({"network.wind": torch.zeros(1)}, "no such weight"),
    ],
)
def test_weights_that_do_not_fit_leave_no_folder(config, weights, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        launch.start_from(config, weights, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()
