"""What is registered is known by name and by address, and never stands in for what ships with edgewise."""

import pytest

import edgewise as ew
from edgewise import plugins
from edgewise.config.errors import ConfigError
from edgewise.plugins import register, registered, use_plugin

PLUGIN = """
import edgewise as ew

class MineConfig(ew.Config):
    size: int = 3

class MineEnv(ew.GraphEnv[MineConfig]):
    def setup(self): ...
    def spawn(self, count): ...
    def advance(self, state, action): ...
    def observe(self, state): ...

class GraphwalkEnv(MineEnv):
    pass

class MyRule(ew.Algorithm):
    policy = None
    @classmethod
    def from_setup(cls, setup): ...
    def learn(self, batch): ...
    def state_dict(self): ...
    def load_state_dict(self, state): ...

class Printer(ew.Callback):
    pass

def configure(parser): ...
def run(options, console): ...

SYSTEM = ew.System("mine", verbs=(ew.Verb("hello", "say hello", __name__),))
"""


def baseline(env):
    return None


@pytest.fixture
def plugin(write):
    return use_plugin(str(write("my_plugin.py", PLUGIN)))


def test_a_plug_in_registers_what_it_defines(plugin):
    assert plugins.environments()["mine"].env is plugin.MineEnv
    assert plugins.algorithms()["myrule"].algorithm is plugin.MyRule
    assert plugins.find("logger", "printer") is plugin.Printer
    assert plugins.listed("system")["mine"].verbs[0].load() is plugin


def test_a_plug_in_never_stands_in_for_what_ships_with_edgewise(plugin):
    """Its class is found by its address alone."""
    assert plugins.environment("graphwalk").env == "edgewise.systems.graphwalk.env:GraphwalkEnv"
    assert plugins.environment("my_plugin.py:GraphwalkEnv").env is plugin.GraphwalkEnv
    assert "graphwalk" not in registered("environment")


@pytest.mark.parametrize(("name", "kind"), [("graphwalk", "environment"), ("ppo", "algorithm")])
def test_a_name_that_is_taken(plugin, name, kind):
    cls = plugin.MineEnv if kind == "environment" else plugin.MyRule
    with pytest.raises(ConfigError, match="ships with edgewise"):
        register(cls, name=name)


def test_registering_twice_takes_the_later(plugin):
    register(plugin.MineEnv, name="twice", summary="first")
    register(plugin.MineEnv, name="twice", summary="second")
    assert plugins.environment("twice").summary == "second"


def test_a_plug_in_that_registers_itself_is_not_registered_over(write):
    text = PLUGIN + "ew.register(MineEnv, name='own', baselines={'b': configure})\n"
    module = use_plugin(str(write("registers_itself.py", text)))
    assert plugins.environment("own").baselines == {"b": module.configure}
    assert plugins.environment("registers_itself.py:MineEnv").baselines == {"b": module.configure}
    assert "mine" not in registered("environment")
    assert plugins.environment("own").env is module.MineEnv


def test_every_environment_has_random_actions(plugin):
    class Worlds:
        rand_action = "at random"

    own, listed = (plugins.environment(name).load_baselines() for name in ("mine", "queueing"))
    assert list(own) == own.names() == ["random"]
    assert "random" in listed
    assert "random" not in list(listed)
    assert "random" in listed.names()
    assert own["random"](Worlds) == listed["random"](Worlds) == "at random"
    assert plugins.environment("graphwalk").load_baselines()["random"].__name__ == "random_walk"


@pytest.mark.parametrize("given", [3, baseline, ew.Verb("x", "y", "z")])
def test_what_cannot_be_registered(given):
    with pytest.raises(ConfigError, match="expected one of: environment, algorithm, recipe"):
        register(given)


def test_a_system_brings_all_of_its_parts(plugin):
    register(
        ew.System(
            name="bundle",
            environments={"bundled": plugins.Environment(env=plugin.MineEnv)},
            verbs=(ew.Verb("bundled", "a verb", plugin),),
            loggers={"bundled": plugin.Printer},
        )
    )
    assert plugins.environment("bundled").env is plugin.MineEnv
    assert [verb.name for verb in plugins.listed("system")["bundle"].verbs] == ["bundled"]
    assert plugins.find("logger", "bundled") is plugin.Printer


def test_a_verb_without_functions():
    with pytest.raises(ConfigError, match="has no `configure"):
        ew.Verb("x", "y", 3).load()
