"""The recipes train on worlds of all stages at once, and those that select do so on many worlds of each."""

import pytest
import torch

from edgewise.algorithms.off_policy_config import ACIQNConfig, DQNConfig, SACConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.systems.marine.recipes.stages import STAGES, schedules

RECIPES = tuple(f"marine-{name}" for name in ("dqn", "rainbow", "iqn", "ac-iqn", "sac", "ddpg"))


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_stage_is_trained_and_evaluated(recipe):
    config = load_config(recipe)
    ranges = (config.env.num_robots, config.env.num_obstacles, config.env.min_start_goal_dis)
    for stage in STAGES:
        assert all(low <= value <= high for (low, high), value in zip(ranges, stage, strict=True))
    assert config.training.curriculum == ()
    selects = config.evaluation.every < config.training.total_frames
    assert all(stage.episodes >= (200 if selects else 50) for stage in config.evaluation.stages)
    assert len(config.evaluation.stages) == len(STAGES)
    assert config.training.total_frames % config.evaluation.every == 0
    assert config.env.max_steps < config.evaluation.settings["max_steps"]


def test_one_batch_has_worlds_of_many_sizes():
    state = Builder(load_config("marine-dqn")).env.reset()["state"]
    robots, obstacles = state["active"].sum(-1), state["obstacle_mask"].sum(-1)
    assert set(robots.tolist()) == {3, 4, 5}
    assert set(obstacles.tolist()) == {0, 1, 2, 3, 4}
    assert torch.corrcoef(torch.stack((robots, obstacles)).float())[0, 1].abs() < 0.4


def test_schedules_are_of_the_settings_that_an_agent_has():
    assert set(schedules(SACConfig(), 100)) == {"learning_rate"}
    dqn = schedules(DQNConfig(prioritised=True, learning_rate=1e-3), 100)
    assert dqn["learning_rate"] == Linear(start=1e-3, end=5e-5)
    assert dqn["epsilon"] == Linear(start=0.6, end=0.02, frames=25)
    assert schedules(DQNConfig(), 100, exploring=0.6)["epsilon"].frames == 60
    assert dqn["beta"] == Linear(start=0.4, end=1.0)
    averse = schedules(ACIQNConfig(risk="cvar", risk_alpha=0.3), 100)
    assert averse["risk_alpha"] == Linear(start=1.0, end=0.3, frames=50)
    assert "risk_alpha" not in schedules(ACIQNConfig(), 100)
