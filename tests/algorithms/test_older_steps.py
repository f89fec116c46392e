"""PPO on steps of older weights: corrected by V-trace, and unchanged where the weights are the same."""

import pytest
import torch
from tests.algorithms.worlds import SETTINGS, batches, learner, toy

from edgewise.algorithms.config import SelfPlayConfig
from edgewise.objectives.alignment import match_log_ratio


def marked(batch, age):
    return batch.clone().set("staleness", torch.full(batch.batch_size, age))


def weights(algorithm):
    return torch.cat([each.detach().reshape(-1) for each in algorithm.actor_critic.parameters()])


@pytest.mark.parametrize("name", ["marked", "signals", "dials"])
def test_on_steps_of_its_own_it_learns_as_always(name):
    env = toy(name)
    config = SETTINGS
    one, other = learner(env, config=config), learner(env, config=config)
    batch = next(batches(env, one, 1)).clone()
    assert weights(one).equal(weights(other))
    plain, found = one.learn(batch.clone()), other.learn(marked(batch, 0))
    assert (weights(one) - weights(other)).abs().max() < 1e-4
    assert found["importance"].item() == pytest.approx(1.0, abs=1e-5)
    assert found["importance_effective"].item() == pytest.approx(1.0, abs=1e-5)
    assert found["explained_variance"].item() == pytest.approx(plain["explained_variance"].item(), abs=1e-3)
    assert "importance" not in plain


@pytest.mark.parametrize("name", ["marked", "signals"])
def test_older_steps_have_the_weights_of_their_probabilities(name):
    env = toy(name)
    config = SETTINGS.model_copy(update={"learning_rate": 0.03, "epochs": 4})
    algorithm = learner(env, config=config)
    old, new = (batch.clone() for batch in batches(env, algorithm, 2))
    algorithm.learn(new)
    with torch.no_grad():
        log_ratio = algorithm.policy.get_dist(old).log_prob(old["action"]) - old["action_log_prob"]
    active = old.get(("agents", "active"), None)
    log_ratio = log_ratio if active is None else log_ratio[active]
    captured = {}
    advantages = algorithm._advantages

    def spied(batch):
        captured["batch"] = batch
        return advantages(batch)

    algorithm._advantages = spied
    found = algorithm.learn(marked(old, 2))
    assert found["importance"].item() == pytest.approx(log_ratio.exp().mean().item(), rel=1e-4)
    assert found["importance_max"].item() == pytest.approx(log_ratio.max().exp().item(), rel=1e-4)
    assert found["importance_max"] > 1.05
    assert found["importance_effective"] < 1
    assert found["ratio_start"].item() == pytest.approx(1.0, abs=1e-4)
    assert found["ratio_first"].item() == pytest.approx(1.0, abs=1e-4)
    seen = captured["batch"]
    now = seen["action_log_prob"] - old["action_log_prob"]
    torch.testing.assert_close(seen["log_ratio"], now, atol=1e-5, rtol=1e-4)
    assert match_log_ratio(now, seen["next", "reward"], batch_dims=2).shape == seen["next", "reward"].shape


def test_which_settings_take_older_steps():
    assert learner(toy("marked")).takes_older_steps
    averaged = SETTINGS.model_copy(update={"average_reward": True, "gamma": 1.0})
    for config in (SelfPlayConfig(**SETTINGS.model_dump()), averaged):
        assert not learner(toy("marked"), config=config).takes_older_steps
