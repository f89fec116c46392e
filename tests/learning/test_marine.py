"""Boats train on all stages at once and end above what is published, in the mean of the stages."""

import pytest

from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.experiments.measure import measure_run

pytestmark = pytest.mark.learning

PUBLISHED = {
    "marine-ac-iqn": (0.957, 0.909, 0.835, 0.748, 0.672, 0.621),
    "marine-dqn": (0.792, 0.617, 0.361, 0.275, 0.201, 0.181),
    "marine-ddpg": (0.758, 0.609, 0.466, 0.362, 0.333, 0.296),
    "marine-iqn": (0.920, 0.802, 0.634, 0.555, 0.488, 0.454),
}
"""Success of the published weights on the same 1,000 worlds of each stage."""


@pytest.mark.parametrize(
    "recipe, seed",
    [
        ("marine-dqn", 0),
        ("marine-ddpg", 0),
        ("marine-iqn", 0),
        ("marine-ac-iqn", 0),
        ("marine-ac-iqn", 1),
        ("marine-ac-iqn", 2),
    ],
)
def test_every_stage_is_above_the_published_one(recipe, seed, tmp_path):
    """Two to ten minutes of one core each; all worlds are new."""
    run = start(load_config(recipe, keywords={"seed": seed}), folder=tmp_path / "run")
    stages = measure_run(run, episodes=1000, seed=11)
    reached = [float(stage.metrics["success"].mean()) for stage in stages]
    assert all(ours > theirs for ours, theirs in zip(reached, PUBLISHED[recipe], strict=True)), reached
