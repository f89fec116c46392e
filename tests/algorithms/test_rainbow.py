"""Rainbow: fresh noise in both networks, a support for returns as they are, several steps, priorities."""

import torch
from tests.algorithms.sea import agent
from tests.algorithms.test_agents import transitions
from tests.algorithms.test_dqn import Fixed
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.algorithms.off_policy_config import RainbowConfig
from edgewise.data.replay_buffer import ReplayBuffer


def test_the_defaults_are_those_of_rainbow():
    config = RainbowConfig()
    assert (config.n_step, config.prioritised, config.epsilon) == (3, True, 0.0)
    assert config.atoms == 51


def test_noise_is_fresh_in_every_update_of_both_networks():
    """The planted fault: an online network whose noise is drawn once."""
    learner, samples = agent("rainbow"), transitions("rainbow")
    for networks in (learner.networks, learner.targets):
        one, other = (networks["network"](samples["observation"]) for _ in range(2))
        assert not torch.allclose(one, other)
    assert not torch.allclose(learner.target(samples), learner.target(samples))


def test_the_online_network_chooses_and_the_target_network_values():
    """Sure of 2 for the choice that the online network likes, of 1 for the one it likes itself less."""
    learner, samples = agent("rainbow", v_min=0.0, v_max=4.0, atoms=5), transitions("rainbow")
    sure = torch.full((4, 5), -99.0)
    sure[torch.arange(4), torch.tensor([0, 3, 0, 0])] = 99.0
    liked = torch.full((4, 5), -99.0)
    liked[torch.arange(4), torch.tensor([4, 1, 2, 1])] = 99.0
    learner.networks["network"], learner.targets["network"] = Fixed(sure.tolist()), Fixed(liked.tolist())
    samples["reward"], samples["discount"] = torch.ones(24), torch.ones(24)
    assert learner.target(samples).tolist() == [[0.0, 0.0, 1.0, 0.0, 0.0]] * 24


def test_a_tail_decides_where_risk_is_minded():
    """Choice 0 is sure of 2.5, choice 1 earns 0 or, more likely, 5, the others nothing."""
    logits = torch.full((4, 5), -99.0)
    logits[0, 2] = logits[1, 4] = 99.0
    logits[1, 0] = 98.0
    logits[2:, 0] = 99.0
    ego = transitions("rainbow")["observation"]
    for risk, wanted in (("mean", 1), ("cvar", 0)):
        learner = agent("rainbow", risk=risk, risk_alpha=0.4, v_min=0.0, v_max=5.0, atoms=5)
        learner.networks["network"] = Fixed(logits.tolist())
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            assert learner.act(ego).eq(wanted).all(), risk


def test_beta_can_be_annealed_and_errors_become_priorities():
    learner = agent("rainbow")
    assert isinstance(learner.replay_buffer, ReplayBuffer)
    assert learner.replay_buffer.prioritised
    learner.set_scalar("beta", 0.9)
    assert learner.replay_buffer.beta == 0.9
