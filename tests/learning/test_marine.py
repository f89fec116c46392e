"""Boats go through their whole curriculum and end above what is published for each of its stages."""

import pytest

from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.experiments.measure import measure_run

pytestmark = pytest.mark.learning

PUBLISHED = {
    "marine-ac-iqn": (0.977, 0.883, 0.813, 0.740, 0.743, 0.637),
    "marine-dqn": (0.820, 0.635, 0.365, 0.230, 0.225, 0.150),
}
"""Success of the authors' weights, stage by stage, measured over hundreds of worlds of each."""


@pytest.mark.parametrize(
    "recipe",
    [
        "marine-dqn",
        pytest.param(
            "marine-ac-iqn",
            marks=pytest.mark.xfail(
                reason="seed 0 has .950 and .740 in stages 1 and 5, published .977 and .743", strict=True
            ),
        ),
    ],
)
def test_the_curriculum(recipe, tmp_path):
    """About half an hour of one core for AC-IQN, less for DQN; 200 worlds of each stage, all of them new."""
    run = start(load_config(recipe), folder=tmp_path / "run")
    reached = [float(stage.metrics["success"].mean()) for stage in measure_run(run, episodes=200, seed=7)]
    assert all(ours >= theirs for ours, theirs in zip(reached, PUBLISHED[recipe], strict=True)), reached
