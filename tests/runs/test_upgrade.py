"""Configs of edgewise 0.2 are read: what is gone is dropped where it had no effect, and refused elsewhere."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.experiments.load import load_config
from edgewise.models.config import ModelConfig
from edgewise.runs.upgrade import upgrade
from edgewise.training.fitting import check_fit, identity

ZOO = Path(__file__).parents[2] / "src/edgewise/zoo"
OLD = "graphwalk-ppo"


def old_values():
    return json.loads((ZOO / OLD / "config.json").read_text())


@pytest.fixture
def folder(tmp_path):
    """A run folder of 0.2; returns a function that changes its config."""
    shutil.copytree(ZOO / OLD, tmp_path / "run")
    file = tmp_path / "run" / "config.json"

    def change(section, name, value):
        values = old_values()
        values[section][name] = value
        file.write_text(json.dumps(values))
        return file

    return change


def test_the_zoo_was_written_by_an_earlier_version():
    assert json.loads((ZOO / OLD / "versions.json").read_text())["format"] == 2
    assert old_values()["model"]["sets"] == ModelConfig.removed["sets"]


def test_removed_settings_with_the_value_that_is_left_are_dropped():
    before = {**old_values(), "ray": {"address": None, "attempts": 10}}
    values, reasons = upgrade(before, type(load_config(OLD)))
    assert reasons == []
    assert "ray" not in values
    assert "sets" not in values["model"]
    assert before["model"] == old_values()["model"]
    assert load_config(ZOO / OLD / "config.json").model.head_hidden == (64,)


def test_a_removed_setting_with_another_value_is_refused_by_name(folder):
    file = folder("model", "sets", "whole")
    with pytest.raises(ConfigError, match=r"model\.sets = 'whole' is no longer possible.*use edgewise 0\.2"):
        load_config(file)


def test_a_setting_that_never_was_is_an_unknown_field(folder):
    with pytest.raises(ConfigError, match="unknown field"):
        load_config(folder("model", "settings", "whole"))


def test_a_removed_setting_is_unknown_in_a_file_of_the_users_own(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(f"recipe: {OLD}\nmodel: {{sets: in_turn}}\n")
    with pytest.raises(ConfigError, match="unknown field"):
        load_config(file)


def test_a_checkpoint_of_an_earlier_version_is_compared_by_what_is_left():
    config = load_config(OLD)
    state = {"algorithm": {}, "rollout": {}, "random": {}, "clock": {}}
    identity = {**old_values(), "model": {**old_values()["model"], "sets": "whole"}}
    with pytest.raises(CheckpointError, match=r"model\.sets = 'whole'"):
        check_fit(Path("x"), {**state, "trainer": {"identity": identity}}, config=config, parts=None)


def test_numbers_of_removed_settings_in_a_checkpoint_are_no_difference():
    config = load_config(OLD)
    numbers = {"gamma": 0.99}
    part = SimpleNamespace(state_dict=lambda: {"scalars": numbers})
    nothing = SimpleNamespace(state_dict=dict)
    parts = SimpleNamespace(algorithm=part, rollout=nothing)
    state = {"rollout": {}, "random": {}, "clock": {}, "trainer": {"identity": identity(config)}}
    old = {**state, "algorithm": {"scalars": {**numbers, "adam_epsilon": 1e-5}}}
    check_fit(Path("x"), old, config=config, parts=parts)
    other = {**state, "algorithm": {"scalars": {**numbers, "lmbda": 0.9}}}
    with pytest.raises(CheckpointError, match="lmbda"):
        check_fit(Path("x"), other, config=config, parts=parts)
