"""Boats train on all stages at once, end above what is published, and need what they detect for it."""

import pytest

from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments.evaluate import evaluate_ablations, evaluate_run
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config

pytestmark = pytest.mark.learning

PUBLISHED = {
    "marine-ac-iqn": (0.957, 0.909, 0.835, 0.748, 0.672, 0.621),
    "marine-dqn": (0.792, 0.617, 0.361, 0.275, 0.201, 0.181),
    "marine-ddpg": (0.758, 0.609, 0.466, 0.362, 0.333, 0.296),
    "marine-iqn": (0.920, 0.802, 0.634, 0.555, 0.488, 0.454),
    "marine-sac": (0.961, 0.887, 0.752, 0.661, 0.583, 0.555),
}
"""Success of the published weights on the same 1,000 worlds of each stage."""


def train(recipe, seed, folder):
    """Train a recipe, in two to ten minutes of one core."""
    return start(load_config(recipe, keywords={"seed": seed}), folder=folder)


def success(run, *, deterministic=True):
    """Success of a run in each stage, in new worlds."""
    stages = evaluate_run(run, EvaluationRequest(episodes=1000, seed=11, deterministic=deterministic))
    return [float(stage.metrics["success"].mean()) for stage in stages]


@pytest.mark.parametrize("seed", range(3))
def test_every_stage_is_above_the_published_one(seed, tmp_path):
    reached = success(train("marine-ac-iqn", seed, tmp_path / "run"))
    published = PUBLISHED["marine-ac-iqn"]
    assert all(ours > theirs for ours, theirs in zip(reached, published, strict=True)), reached


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("recipe", ["marine-dqn", "marine-ddpg", "marine-iqn", "marine-sac"])
def test_the_mean_of_the_stages_is_above_the_published_one(recipe, seed, tmp_path):
    """SAC samples its actions, as the published one does in evaluation."""
    run = train(recipe, seed, tmp_path / "run")
    reached = success(run, deterministic=recipe != "marine-sac")
    assert sum(reached) > sum(PUBLISHED[recipe]), reached


def test_boats_need_the_objects_that_they_detect(tmp_path):
    run = train("marine-ac-iqn", 0, tmp_path / "run")
    for whole, blind in evaluate_ablations(
        run, ["agents.ego.objects"], EvaluationRequest(episodes=200, seed=11)
    ):
        assert blind.result.metrics["success"].mean() < 0.5 * whole.metrics["success"].mean()
