"""Names lead to environments, wrong ones to one clear error, and nothing imports torch before its time."""

import subprocess
import sys

import pytest

from edgewise.config.errors import ConfigError
from edgewise.envs.registry import make_config, make_env
from edgewise.plugins import environment, environments
from edgewise.problems import SYSTEM as PROBLEMS


def test_an_unknown_name_is_answered_with_the_nearest_and_all():
    with pytest.raises(ConfigError) as caught:
        make_env("graphwlak")
    assert "graphwlak" in caught.value.message
    assert "did you mean graphwalk?" in caught.value.hint
    assert all(name in caught.value.hint for name in environments())


def test_all_wrong_settings_are_named_at_once():
    with pytest.raises(ConfigError) as caught:
        make_env("graphwalk", max_steps=0, num_node=5, num_nodes=(3, 99), max_nodes=7)
    message = str(caught.value)
    assert "max_steps" in message
    assert "num_node" in message
    assert "did you mean num_nodes" in message


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ConfigError, match="exceeds max_nodes 7"):
        make_config("graphwalk", num_nodes=(3, 99), max_nodes=7)
    with pytest.raises(ConfigError, match="at least 2 nodes"):
        make_config("graphwalk", num_nodes=(1, 9))


def test_configs_come_without_torch():
    program = (
        "import sys; from edgewise.plugins import environment, environments;"
        "[environment(name).load('config')() for name in environments()]; print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize("name", environments())
def test_a_declaration_leads_to_all_parts(name):
    entry = environment(name)
    env = make_env(name, num_envs=2)
    assert isinstance(env, entry.load("env"))
    assert isinstance(env.config, entry.load("config"))
    assert env.name == name
    assert all(callable(factory) for factory in entry.load_baselines().values())
    assert entry.load_baselines()
    draw = entry.load("replay")
    assert callable(draw) or name in PROBLEMS.environments, "problems are drawn as any graph is"
    assert entry.summary


def test_a_device_that_is_absent_is_refused_in_words():
    with pytest.raises(ConfigError, match=r"device: got cuda:7, but this machine has \d+ of kind cuda"):
        make_env("graphwalk", device="cuda:7")
