"""One small run for all tests, made from Python."""

import pytest

import edgewise as ew

SMALL = {
    "training": {"total_frames": 96, "num_envs": 4, "rollout_length": 8},
    "algorithm": {"epochs": 1, "minibatch_size": 16},
    "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
    "evaluation": {"every": None, "episodes": 4},
    "logging": {"tensorboard": False},
    "checkpoint": {"every": 40},
}


@pytest.fixture(scope="session")
def small():
    """Settings of a run of three batches, in about a second."""
    return SMALL


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of a small run. Tests leave it as it is."""
    return ew.train("graphwalk-ppo", folder=tmp_path_factory.mktemp("runs") / "walk", **SMALL)
