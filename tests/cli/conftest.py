"""A command line that runs in this process, and one small trained run for all tests."""

import json
from dataclasses import dataclass

import pytest

from edgewise.cli.main import main

SMALL = {
    "training.total_frames": 96,
    "training.num_envs": 4,
    "training.rollout_length": 8,
    "algorithm.epochs": 1,
    "algorithm.minibatch_size": 16,
    "model.encoder.hidden": 8,
    "model.encoder.heads": 2,
    "model.encoder.layers": 1,
    "evaluation.every": "none",
    "evaluation.episodes": 4,
    "logging.tensorboard": "false",
    "checkpoint.every": 40,
}
FLAGS = [f"--{name}={value}" for name, value in SMALL.items()]


@dataclass(frozen=True)
class Outcome:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def data(self):
        return json.loads(self.out)


@pytest.fixture
def edgewise(capsys):
    """Runs a command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Outcome(code, out, err)

    return run


@pytest.fixture(scope="session")
def small():
    """Flags that make a run of three batches, in about a second."""
    return FLAGS


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of a small run, made by the command line. Tests leave it as it is."""
    folder = tmp_path_factory.mktemp("runs") / "walk"
    assert main(["train", "graphwalk-ppo", *FLAGS, "--out", str(folder)]) == 0
    return folder
