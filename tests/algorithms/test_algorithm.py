"""The base of all algorithms: what is missing is named, and everything optional has a default."""

import pytest
import torch
from torch import nn

import edgewise as ew
from edgewise.algorithms.registry import ALGORITHMS


class Settings(ew.Config):
    rate: float = 0.5
    count: int | None = None
    name: str = "plain"


class Plain(ew.Algorithm):
    """Only what every algorithm must define."""

    def __init__(self, policy, config=None):
        self.own, self.config = policy, config

    @classmethod
    def from_setup(cls, setup):
        return cls(setup.make_model())

    @property
    def policy(self):
        return self.own

    def learn(self, batch):
        return {"steps": torch.tensor(float(batch.numel()))}

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Scheduled(Plain):
    """Its numbers can change."""

    def apply_config(self):
        self.applied = self.config.rate


def test_a_missing_method_is_named():
    class Forgetful(Plain):
        learn = ew.Algorithm.learn

    with pytest.raises(TypeError, match="learn"):
        Forgetful(None)


def test_everything_else_has_a_default():
    policy = nn.Linear(1, 1)
    algorithm = Plain(policy)
    assert algorithm.behaviour is algorithm.acting_module is policy
    assert algorithm.make_collector(None, rollout_length=4) is None
    assert algorithm.group.size == 1
    assert algorithm.scalars() == {}
    assert not algorithm.needs_state
    assert not algorithm.takes_older_steps
    assert Plain(lambda root: root).acting_module is None


def test_numbers_change_only_where_the_algorithm_passes_them_on():
    algorithm = Scheduled(None, Settings())
    assert algorithm.scalars() == {"rate": 0.5}
    algorithm.set_scalar("rate", 0.25)
    assert algorithm.applied == 0.25
    with pytest.raises(ValueError, match="no numeric setting 'name'; it has rate, count"):
        algorithm.set_scalar("name", 1.0)
    with pytest.raises(ValueError, match="Plain has no numbers that can be scheduled"):
        Plain(None, Settings()).set_scalar("rate", 0.25)
    with pytest.raises(ValueError, match="it has none"):
        Plain(None).set_scalar("rate", 0.25)


def test_saved_numbers_are_restored_and_those_of_removed_settings_ignored():
    algorithm = Scheduled(None, Settings())
    algorithm.load_scalars({"rate": 0.125, "count": 3.0, "gone": 1.0})
    assert algorithm.scalars() == {"rate": 0.125, "count": 3}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_this_base(name):
    assert issubclass(ALGORITHMS[name].load("algorithm"), ew.Algorithm)
