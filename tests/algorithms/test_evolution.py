"""Evolution strategies: the gradient against its definition, pairs, processes, resumption and refusals."""

import pytest
import torch
from tests.algorithms.worlds import SMALL, evolving, toy
from tests.envs.test_hold import tanks
from torch.nn.utils import parameters_to_vector

from edgewise.algorithms.config import EvolutionConfig
from edgewise.algorithms.evolution import Evolution, candidate_returns
from edgewise.config.errors import ConfigError
from edgewise.data.candidates import CANDIDATE, NOISE
from edgewise.data.episodes import INSTANCE
from edgewise.models.actor_critic import make_actor_critic


def learner(env, seed=0, **config):
    torch.manual_seed(0)
    actor = make_actor_critic(env.graph, env.actions, SMALL).actor
    return Evolution(actor, EvolutionConfig(**{"pairs": 4} | config), seed=seed)


@pytest.mark.parametrize("ranks", ["world", "mean"])
def test_the_gradient_is_the_one_of_the_definition(ranks):
    """Recomputed candidate by candidate, from the returns in the batch and noise drawn from its seed."""
    env = tanks(num_envs=24, hold="episode")
    algorithm = learner(env, ranks=ranks, sigma=0.2)
    batch = algorithm.make_collector(env, rollout_length=1).collect()
    algorithm.learn(batch.clone())
    found = torch.cat([parameter.grad.reshape(-1) for parameter in algorithm.actor.parameters()])
    generator = torch.Generator().manual_seed(int(batch[NOISE][0, 0]))
    noise = torch.randn(4, len(found), generator=generator)
    returns = candidate_returns(batch, candidates=8)
    assert returns.shape == (8, 3)
    columns = returns.T if ranks == "world" else returns.mean(1).unsqueeze(0)
    score = torch.stack([each.argsort().argsort() / 7 - 0.5 for each in columns]).mean(0)
    expected = torch.zeros_like(found)
    for pair in range(4):
        expected -= (used(score)[pair] - used(score)[pair + 4]) * noise[pair] / (8 * 0.2)
    assert torch.allclose(found, expected, atol=1e-5)


def used(score):
    """Centred ranks of scores, with equal ones at the mean of their places."""
    return torch.stack([((score < each).sum() - (score > each).sum()) / 14 for each in score])


def test_candidates_play_the_same_worlds_and_leave_the_policy_as_it_is():
    env = toy("marked", num_envs=24)
    algorithm = learner(env)
    before = parameters_to_vector(algorithm.actor.parameters()).clone()
    batch = algorithm.make_collector(env, rollout_length=9).collect()
    assert torch.equal(before, parameters_to_vector(algorithm.actor.parameters()))
    pairs = torch.stack((batch[CANDIDATE].reshape(-1), batch[INSTANCE].reshape(-1)), -1)
    worlds = 3 * 3  # three rounds of four steps
    assert pairs.unique(dim=0).shape == (8 * worlds, 2)
    assert batch.shape == (1, 8 * worlds * 4)
    assert batch.get("graph", None) is None


def test_equal_returns_change_nothing():
    env = toy("marked", num_envs=8)
    algorithm = learner(env)
    before = parameters_to_vector(algorithm.actor.parameters()).clone()
    batch = algorithm.make_collector(env, rollout_length=1).collect()
    batch["next", "reward"].zero_()
    algorithm.learn(batch)
    assert torch.equal(before, parameters_to_vector(algorithm.actor.parameters()))


def test_a_collector_goes_on_bit_for_bit():
    env, other = toy("marked", num_envs=16, seed=1), toy("marked", num_envs=16, seed=2)
    first, second = evolving(env, seed=1), evolving(other, seed=2)
    mine, theirs = (
        each.make_collector(place, rollout_length=1) for each, place in ((first, env), (second, other))
    )
    first.learn(mine.collect())
    second.load_state_dict(first.state_dict())
    theirs.load_state_dict(mine.state_dict())
    one, two = mine.collect(), theirs.collect()
    assert (one == two).all()
    first.learn(one)
    second.learn(two)
    pairs = zip(first.actor.parameters(), second.actor.parameters(), strict=True)
    assert all(torch.equal(left, right) for left, right in pairs)


def test_too_few_worlds_are_refused():
    env = toy("marked", num_envs=6)
    with pytest.raises(ConfigError, match="num_envs: got 6, but each of 8 candidates"):
        learner(env).make_collector(env, rollout_length=1)


def test_what_others_collected_is_refused():
    env = toy("marked", num_envs=8)
    batch = learner(env).make_collector(env, rollout_length=1).collect()
    with pytest.raises(ValueError, match="collect it with"):
        learner(env).learn(batch.exclude(NOISE))
