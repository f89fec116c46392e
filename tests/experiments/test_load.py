"""A name, a file or a config finds its recipe, and what cannot be found is named."""

import json

import pytest

from edgewise.config.errors import ConfigError
from edgewise.config.schedules import Constant
from edgewise.experiments.load import load_config
from edgewise.experiments.recipes import recipe
from edgewise.plugins import recipes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, text, name="mine.yaml"):
    (folder / name).write_text(text)
    return name


def refused(*arguments, **more):
    with pytest.raises(ConfigError) as caught:
        load_config(*arguments, **more)
    return str(caught.value)


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_is_what_its_name_says(name):
    found = recipe(name)
    assert found.name == found.config.recipe == name
    assert found.summary
    assert load_config(name) == found.config


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_survives_being_written(name):
    config = recipe(name).config
    assert type(config).from_plain(json.loads(json.dumps(config.to_plain()))) == config


def test_a_config_is_its_own_recipe():
    config = load_config("graphwalk-ppo", keywords={"seed": 7})
    assert load_config(config, keywords={"threads": 2}) == config.model_copy(update={"threads": 2})


def test_a_file_names_its_recipe(folder):
    assert load_config(write(folder, "recipe: graphwalk-ppo\nseed: 3\n")).seed == 3


def test_a_name_that_is_nowhere():
    assert "did you mean graphwalk-ppo?" in refused("grahpwalk-ppo")
    assert "environments: graphwalk" in refused("zzz")
    assert "cannot be read" in refused("not-there.yaml")


def test_a_file_without_a_recipe(folder):
    assert "name what is trained" in refused(write(folder, "seed: 3\n"))
    assert "name what is trained" in refused(write(folder, ""))


def test_an_unknown_recipe_does_not_hide_the_other_problems(folder):
    said = refused(
        write(folder, "recipe: graphwalk-pp\nseed: x\nenv: {anything: 1}\ntraining: {rollout_length: 0}\n")
    )
    assert "did you mean graphwalk-ppo?" in said
    assert "seed" in said
    assert "training.rollout_length" in said
    assert "anything" not in said


def test_file_and_command_must_agree_on_the_recipe(folder):
    assert "let them agree" in refused("graphwalk-ppo", file=write(folder, "recipe: other\n"))
    assert "one file" in refused(write(folder, "recipe: graphwalk-ppo\n"), file="more.yaml")


def test_a_recipe_cannot_be_changed_by_a_setting():
    assert "chosen by what is trained" in refused("graphwalk-ppo", keywords={"recipe": "other"})


def test_sections_as_mappings_and_names_as_paths():
    config = load_config(
        "graphwalk-ppo",
        keywords={
            "env": {"num_nodes": (5, 6)},
            "training.rollout_length": 4,
            "total_frames": 1e3,
            "schedules": {"learning_rate": {"kind": "constant", "value": 0.1}},
        },
    )
    assert config.env.num_nodes == (5, 6)
    assert config.env.extra_edges == recipe("graphwalk-ppo").config.env.extra_edges
    assert (config.training.rollout_length, config.training.total_frames) == (4, 1000)
    assert config.training.schedules["learning_rate"] == Constant(value=0.1)
