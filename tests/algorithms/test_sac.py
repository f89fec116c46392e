"""SAC: the actor as it is now acts in targets, the lesser critic counts, the temperature holds entropy."""

import torch
from tests.algorithms.sea import agent
from tests.algorithms.test_agents import transitions, views


def test_targets_follow_the_actor_and_not_its_slow_copy():
    """The planted fault: a target actor."""
    learner, samples = agent("sac"), transitions("sac")

    def target():
        torch.manual_seed(0)
        return learner.target(samples)

    before = target()
    for parameter in learner.targets["actor"].parameters():
        parameter.data.fill_(0.3)
    assert torch.equal(target(), before)
    for parameter in learner.networks["actor"].parameters():
        parameter.data.mul_(1.5)
    assert not torch.equal(target(), before)


def test_the_lesser_of_two_critics_counts():
    learner, samples = agent("sac", initial_temperature=1e-9), transitions("sac")
    for part in ("first", "second"):
        value = getattr(learner.targets["critics"], part).value
        value.weight.data.zero_()
        value.bias.data.fill_(3.0 if part == "first" else 2.0)
    target = learner.target(samples)
    torch.testing.assert_close(target, samples["reward"] + 2 * samples["discount"], atol=1e-4, rtol=1e-4)


def test_the_two_critics_begin_apart_and_both_learn():
    learner, samples = agent("sac"), transitions("sac")
    first, second = learner.networks["critics"](samples["observation"], samples["action"] / 2)
    assert not torch.allclose(first, second)


def test_the_temperature_brings_entropy_to_where_it_is_wanted():
    learner = agent("sac", target_entropy=-1.0, learning_rate=1e-2, initial_temperature=0.5)
    samples = transitions("sac", 32)
    samples["reward"], samples["discount"] = -samples["action"].square().sum(-1), torch.zeros(32)
    entropies = [learner.update(samples)[0]["entropy"].item() for _ in range(250)]
    assert abs(sum(entropies[-50:]) / 50 + 1.0) < 0.5
    assert abs(entropies[0] + 1.0) > 0.5


def test_log_probabilities_are_of_the_action_that_is_taken():
    """Against the density of the arc tangent of a normal, by hand."""
    learner = agent("sac")
    distribution = learner.distribution(views(50))
    action, log_prob = distribution.rsample_and_log_prob()
    z = (action.double() * torch.pi / 2).tan()
    normal = torch.distributions.Normal(distribution.loc.double(), distribution.log_scale.double().exp())
    wanted = (normal.log_prob(z) - (2 / torch.pi / (1 + z.square())).log()).sum(-1)
    inside = (action.abs() < 0.99).all(-1)
    torch.testing.assert_close(log_prob.double()[inside], wanted[inside], atol=1e-3, rtol=1e-3)
