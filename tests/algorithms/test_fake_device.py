"""On another device nothing mixes devices and nothing waits for a value, from the world to the update."""

import pytest
import torch
from tests.algorithms.worlds import SETTINGS, SMALL, TOYS, learner, toy

from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.objectives.graph_gae import GraphGAE

PLACES = {**dict.fromkeys(TOYS, toy), "graphwalk": make_env}


def place(name, device):
    return PLACES[name](name, num_envs=4, seed=0, device=device)


CHANGED = {"boundary_budget": 2, "normalise_value": True, "value_clip": 0.2}
UPDATES = {"graphwalk": {}, "signals": {}, "marked": CHANGED, "dials": CHANGED}
"""Place → what is changed there in the settings of PPO."""


@pytest.mark.parametrize("name, changed", UPDATES.items(), ids=UPDATES)
def test_one_update_of_ppo(fake_device, name, changed):
    env = place(name, fake_device)
    algorithm = learner(env, config=SETTINGS.model_copy(update=changed), model=SMALL, device=fake_device)
    batch = Rollout(env, algorithm.policy, rollout_length=6).collect()
    assert batch["action"].device == fake_device
    metrics = algorithm.learn(batch)
    assert metrics["loss"].device == fake_device
    assert all(each.grad.device == fake_device for each in algorithm.actor_critic.parameters())


def test_ppo_goes_on_from_a_state_that_a_checkpoint_put_on_the_cpu(fake_device):
    """A fused optimiser wants its step counts where the weights are."""
    env = place("graphwalk", fake_device)
    algorithm = learner(env, config=SETTINGS, model=SMALL, device=fake_device)
    rollout = Rollout(env, algorithm.policy, rollout_length=6)
    algorithm.learn(rollout.collect())
    state = algorithm.state_dict()
    for moments in state["optimizer"].values():
        moments.update({name: value.cpu() for name, value in moments.items()})
    algorithm.load_state_dict(state)
    held = [value for moments in algorithm.optimizer.state.values() for value in moments.values()]
    assert held
    assert all(value.device == fake_device for value in held)


@pytest.mark.parametrize("budget", [None, 0, 2, 100])
def test_advantages(fake_device, budget):
    env = place("graphwalk", fake_device)
    algorithm = learner(env, device=fake_device)
    batch = Rollout(env, algorithm.policy, rollout_length=6).collect()
    gae = GraphGAE(
        gamma=0.9,
        lmbda=0.9,
        value_network=algorithm.actor_critic.critic,
        value_chunk_size=7,
        average_gae=True,
        boundary_budget=budget,
    )
    found = gae(batch)["advantage"]
    assert found.device == fake_device
    assert found.shape == (4, 6, 1)


def test_the_fixture_notices_what_it_should(fake_device):
    """The planted faults: a tensor left on the CPU, and a value asked for."""
    there = torch.zeros(3, device=fake_device)
    with pytest.raises(RuntimeError, match="device"):
        there + torch.zeros(3)
    with pytest.raises(RuntimeError, match="_local_scalar_dense"):
        bool(there.sum() > 0)
