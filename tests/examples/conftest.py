"""Where the examples are, and the settings of small runs of them."""

from pathlib import Path

import pytest
from tests.isolation import isolated

EXAMPLES = Path(__file__).parents[2] / "examples"

SMALL = {
    "training": {"total_frames": 96, "num_envs": 4, "rollout_length": 8},
    "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
    "evaluation": {"every": None, "episodes": 4},
    "logging": {"tensorboard": False},
    "checkpoint": {"every": 40},
}
"""A run of three batches."""


@pytest.fixture
def small():
    return SMALL


@pytest.fixture
def tsp(monkeypatch):
    """The folder of the travelling salesman as working directory, with nothing allowed or imported."""
    monkeypatch.chdir(EXAMPLES / "tsp")
    with isolated():
        yield EXAMPLES / "tsp"


@pytest.fixture
def examples():
    """The folder of all examples, with nothing allowed or imported."""
    with isolated():
        yield EXAMPLES
