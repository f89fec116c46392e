"""Boats train on all stages at once and end above what is published, in the mean of the stages."""

import pytest

from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.experiments.measure import measure_run

pytestmark = pytest.mark.learning

PUBLISHED = {
    "marine-dqn": (0.792, 0.617, 0.361, 0.275, 0.201, 0.181),
}
"""Success of the published weights on the same 1,000 worlds of each stage."""


@pytest.mark.parametrize("recipe", PUBLISHED)
def test_the_mean_of_the_stages_is_above_the_published_one(recipe, tmp_path):
    """Two to eight minutes of one core each."""
    run = start(load_config(recipe), folder=tmp_path / "run")
    stages = measure_run(run, episodes=1000, seed=11)
    reached = [float(stage.metrics["success"].mean()) for stage in stages]
    assert sum(reached) > sum(PUBLISHED[recipe]), reached
