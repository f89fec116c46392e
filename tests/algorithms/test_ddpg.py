"""DDPG: the critic learns a known landscape and the actor finds its top."""

import pytest
import torch
from tests.algorithms.sea import agent
from tests.algorithms.test_agents import transitions
from torchrl.envs import ExplorationType, set_exploration_type


def test_the_actor_finds_the_top_of_a_known_landscape():
    """What is earned is least far from (1, -0.5), bounds being -2 and 2."""
    learner, top = agent("ddpg", learning_rate=5e-3), torch.tensor([1.0, -0.5])
    for _ in range(300):
        samples = transitions("ddpg", 96)
        samples["discount"] = torch.zeros(96)
        samples["reward"] = -(samples["action"] - top).square().sum(-1)
        learner.update(samples)
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        action = learner.act(transitions("ddpg", 200)["observation"])
    assert (action.mean(0) - top).abs().max() < 0.4


def test_targets_are_what_the_target_networks_say():
    learner, samples = agent("ddpg"), transitions("ddpg")
    before = torch.manual_seed(1) and learner.target(samples)
    for parameter in learner.networks.parameters():
        parameter.data.mul_(2)
    assert torch.equal(torch.manual_seed(1) and learner.target(samples), before)


@pytest.mark.parametrize("name", ["ddpg", "ac-iqn"])
def test_the_actor_goes_slower_than_its_critic_under_schedules_too(name):
    learner = agent(name, learning_rate=1e-2, actor_share=0.3)
    for rate in (1e-2, 1e-3):
        learner.set_scalar("learning_rate", rate)
        rates = {part: one.param_groups[0]["lr"] for part, one in learner.optimizers.items()}
        assert rates == pytest.approx({"actor": 0.3 * rate, "critic": rate})
    fresh = agent(name, learning_rate=1e-2, actor_share=0.3)
    assert fresh.optimizers["actor"].param_groups[0]["lr"] == pytest.approx(3e-3)
