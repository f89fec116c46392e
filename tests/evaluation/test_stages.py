"""Instances of several kinds in one batch: what each kind gives alone, and what all give together."""

import numpy as np
import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.stages import StageEpisodes, split_by_stage, with_stage_metrics
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config

SPLIT = (StageEpisodes("easy", 2, {"size": 3}), StageEpisodes("hard", 3, {"size": 9}))


def evaluation():
    values = np.arange(5.0)
    return Evaluation(
        env="toy",
        seed=0,
        returns=values,
        lengths=values + 10,
        finished=values > 0,
        metrics={"success": np.array([1.0, 0.0, 1.0, 0.0, 0.0]), "time": values * 2},
        agent_returns=np.stack([values, values], -1),
        settings={"common": True},
    )


def test_each_kind_gets_its_own_episodes_and_settings():
    easy, hard = split_by_stage(evaluation(), SPLIT)
    assert easy.returns.tolist() == [0, 1]
    assert hard.returns.tolist() == [2, 3, 4]
    assert hard.agent_returns.shape == (3, 2)
    assert hard.settings == {"common": True, "size": 9}
    assert easy.metrics["success"].mean() == 0.5
    assert hard.metrics["success"].mean() == pytest.approx(1 / 3)


def test_success_of_each_kind_stands_beside_that_of_all():
    metrics = with_stage_metrics(evaluation(), SPLIT).metrics
    assert metrics["success"].mean() == pytest.approx(0.4)
    assert np.nanmean(metrics["success.easy"]) == 0.5
    assert np.nanmean(metrics["success.hard"]) == pytest.approx(1 / 3)
    assert np.isnan(metrics["success.easy"]).tolist() == [False, False, True, True, True]


def test_time_is_told_of_successes_besides():
    easy, hard = split_by_stage(with_stage_metrics(evaluation(), SPLIT), SPLIT)
    assert np.nanmean(easy.metrics["time.successful"]) == 0
    assert np.nanmean(hard.metrics["time.successful"]) == 4
    assert not any(name.startswith("success.") for name in hard.metrics)


STAGES = [
    {"name": "few", "episodes": 2, "settings": {"num_robots": 2, "num_obstacles": 0}},
    {"name": "many", "episodes": 3, "settings": {"num_robots": 4, "num_obstacles": 3}},
]
QUIET = {"position_noise": 0.0, "velocity_noise": 0.0, "radius_noise": False, "max_steps": 40}


@pytest.fixture(scope="module")
def instances():
    """Worlds of two kinds in which nothing is random, so that a batch of other worlds changes nothing."""
    settings = {
        "env": {**QUIET, "num_robots": 3, "num_obstacles": 0, "max_robots": 4, "max_obstacles": 3},
        "evaluation": {"stages": STAGES, "settings": {"max_steps": 40}},
    }
    return Builder(load_config("marine-dqn", keywords=settings)).instances


def steered(root):
    """Everyone thrusts by where its goal lies."""
    goal = root["agents", "ego", "self"][..., 1]
    return root.set("action", torch.where(goal > 0, 21, 9))


def test_a_batch_of_all_kinds_plays_each_as_it_would_be_alone(instances):
    together = instances(steered)
    assert together.episodes == 5
    robots = (~np.isnan(together.agent_returns)).sum(-1)
    assert robots.tolist() == [2, 2, 4, 4, 4]
    few, many = split_by_stage(together, instances.stages)
    for part, start in ((few, instances.start[:2]), (many, instances.start[2:])):
        config = instances.env.config
        env = type(instances.env)(config, num_envs=len(start), seed=1)
        alone = evaluate(env, steered, episodes=len(start), seed=1, start=start)
        assert alone.returns == pytest.approx(part.returns, abs=1e-4)
        assert alone.lengths.tolist() == part.lengths.tolist()
        assert alone.metrics["energy"] == pytest.approx(part.metrics["energy"], rel=1e-4)


def test_every_evaluation_plays_the_same_worlds(instances):
    one, other = instances(steered), instances(steered)
    assert (one.returns == other.returns).all()
    assert one.metrics["success.many"].shape == (5,)


def test_kinds_of_other_room_cannot_be_one_batch():
    stages = [STAGES[0], {**STAGES[1], "settings": {"num_robots": 4, "max_robots": 9}}]
    config = load_config("marine-dqn", keywords={"evaluation": {"stages": stages}, "env": QUIET})
    with pytest.raises(ConfigError, match=r"\(stage many\): MarineEnv cannot change max_robots"):
        Builder(config).instances  # noqa: B018


def test_a_stage_with_an_unknown_setting_is_refused():
    stages = [{**STAGES[0], "settings": {"num_robot": 2}}]
    with pytest.raises(ConfigError, match="num_robot: no field of the environment has this name"):
        load_config("marine-dqn", keywords={"evaluation": {"stages": stages}})
