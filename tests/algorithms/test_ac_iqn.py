"""AC-IQN: the actor climbs the mean of returns, or of the worst of them."""

import pytest
import torch
from tests.algorithms.sea import agent
from tests.algorithms.test_agents import transitions
from torch import nn
from torchrl.envs import ExplorationType, set_exploration_type


class Bet(nn.Module):
    """The more of the first number is staked, the better on average, and the worse at worst."""

    def forward(self, ego, action, levels):
        stake = action[..., :1] + 1
        return stake * (4 * levels - 1) - 0.3 * stake.square()


@pytest.mark.parametrize("risk, stakes", [("mean", True), ("cvar", False)])
def test_what_the_actor_climbs_depends_on_the_risk_it_takes(risk, stakes):
    learner, samples = agent("ac-iqn", risk=risk, risk_alpha=0.1), transitions("ac-iqn")
    learner.networks["critic"] = Bet()
    for _ in range(200):
        learner.optimizer_step("actor", -learner.policy_quantiles(samples["observation"]).mean())
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        stake = learner.act(samples["observation"])[:, 0] / 2
    assert (stake.mean() > 0.3) == stakes
    assert (stake.mean() < -0.5) == (not stakes)


def test_targets_are_quantiles_of_what_the_target_actor_would_do():
    learner, samples = agent("ac-iqn", target_quantiles=5), transitions("ac-iqn")
    before = torch.manual_seed(1) and learner.target(samples)
    assert before.shape == (24, 5)
    for parameter in learner.networks["actor"].parameters():
        parameter.data.mul_(2)
    assert torch.equal(torch.manual_seed(1) and learner.target(samples), before)
    for parameter in learner.targets["actor"].parameters():
        parameter.data.mul_(2)
    assert not torch.equal(torch.manual_seed(1) and learner.target(samples), before)


def test_noise_is_added_while_exploring_and_stays_in_bounds():
    learner, ego = agent("ac-iqn", action_noise=3.0), transitions("ac-iqn", 500)["observation"]
    with set_exploration_type(ExplorationType.RANDOM):
        action = learner.act(ego)
    assert action.abs().max() == 2.0
