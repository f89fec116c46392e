"""A replay shows the whole episode, however long it is."""

import pytest
import torch

from edgewise.envs.registry import make_env
from edgewise.evaluation.replays.check import check
from edgewise.plugins import environment


@pytest.mark.parametrize("name", ["queueing", "multihop"])
@pytest.mark.parametrize("slots", [5, 1000])
def test_the_last_slot_is_shown(name, slots):
    env = make_env(name, num_envs=1, seed=0)
    root, states = env.reset(), []
    for _ in range(6):
        states.append(root["state"][0])
        root = env.step_mdp(env.step(env.rand_action(root)))
    states = torch.stack(states)[torch.arange(slots + 1) % 6]
    found = environment(name).load("replay")(states)
    assert found["facts"]["slots"] == slots
    assert found["time"][0] == 0
    assert found["time"][-1] == slots
    assert len(found["frames"]) == len(found["time"]) == len(found["series"][0]["values"])
    check(found)
