"""Settings mean what they say: a number that is given replaces its schedule, and an empty table clears."""

import json

import pytest
import torch

import edgewise as ew
from edgewise.algorithms.config import PPOConfig
from edgewise.experiments.load import load_config


def weights(run):
    state = ew.load_policy(run, checkpoint="latest").state_dict()
    return torch.cat([value.flatten().double() for value in state.values() if value.is_floating_point()])


def test_a_flag_for_a_scheduled_number_replaces_the_schedule():
    config = load_config("graphwalk-ppo", flags=[("--learning-rate", "0.01")])
    assert config.algorithm.learning_rate == 0.01
    assert "learning_rate" not in config.training.schedules


def test_a_keyword_and_a_file_replace_it_too(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("recipe: graphwalk-ppo\nalgorithm: {learning_rate: 0.02}\n")
    assert "learning_rate" not in load_config(file).training.schedules
    assert (
        "learning_rate"
        not in load_config("graphwalk-ppo", keywords={"learning_rate": 0.02}).training.schedules
    )


def test_a_file_with_number_and_schedule_keeps_the_schedule(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "recipe: graphwalk-ppo\nalgorithm: {learning_rate: 0.02}\n"
        "training: {schedules: {learning_rate: {kind: constant, value: 0.03}}}\n"
    )
    assert load_config(file).training.schedules["learning_rate"].value == 0.03


def test_other_schedules_stay():
    config = load_config("hex-selfplay", keywords={"learning_rate": 0.01})
    assert set(config.training.schedules) == {"entropy_coefficient"}


def test_an_empty_table_clears_and_an_empty_section_does_not():
    config = load_config("graphwalk-ppo", keywords={"schedules": {}, "env": {}})
    assert config.training.schedules == {}
    assert config.env == load_config("graphwalk-ppo").env


def test_the_number_is_what_the_run_trains_with_and_what_its_folder_says(tmp_path, small):
    settings = {**small, "training": {**small["training"], "curriculum": []}}
    plain = ew.train("graphwalk-ppo", folder=tmp_path / "plain", progress=False, **settings)
    slow = {**settings, "algorithm": {**small["algorithm"], "learning_rate": 1e-9}}
    run = ew.train("graphwalk-ppo", folder=tmp_path / "slow", progress=False, **slow)
    written = json.loads((run / "config.json").read_text())
    assert written["algorithm"]["learning_rate"] == 1e-9
    assert "learning_rate" not in written["training"]["schedules"]
    assert run.config.algorithm.learning_rate == 1e-9
    assert not torch.equal(weights(run), weights(plain))


@pytest.mark.parametrize("name", ["learning_rate", "entropy_coefficient"])
def test_a_resumed_run_keeps_it(tmp_path, small, name):
    value = 0.007
    assert name in PPOConfig.model_fields
    settings = {**small, "algorithm": {**small["algorithm"], name: value}}
    run = ew.train("graphwalk-ppo", folder=tmp_path / "run", progress=False, **settings)
    run.resume(total_frames=128)
    assert getattr(run.config.algorithm, name) == value
    assert name not in run.config.training.schedules
