"""Algorithms by name, without importing what is not asked for."""

import subprocess
import sys

import pytest

from edgewise.algorithms.registry import ALGORITHMS, algorithm_class, algorithm_config
from edgewise.config.model import Config


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_name_leads_to_an_algorithm_and_its_config(name):
    found = algorithm_class(name)
    assert all(hasattr(found, part) for part in ("policy", "learn", "state_dict", "load_state_dict"))
    config = algorithm_config(name)
    assert issubclass(config, Config)
    config()
    assert all(field.description for field in config.model_fields.values())


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"no algorithm is called 'pop'; there are .*ppo"):
        algorithm_class("pop")


def test_a_config_costs_no_torch():
    code = (
        "import sys; from edgewise.algorithms.registry import ALGORITHMS, algorithm_config; "
        "[algorithm_config(name)() for name in ALGORITHMS]; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
