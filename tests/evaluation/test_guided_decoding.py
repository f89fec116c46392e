"""Guided beams and symmetries, and decoding of policies that encode an instance once."""

import itertools

import numpy as np
import pytest
import torch
from tests.algorithms.picking import picking
from tests.evaluation.test_decoding import actor_for, brute_force, decoded

import edgewise as ew
from edgewise.config.decoding import Decoding
from edgewise.evaluation.evaluate import evaluate
from edgewise.models.actor_critic import make_actor_critic

MODEL = ew.ModelConfig(encoder=ew.EncoderConfig(hidden=16, layers=1, heads=2))


class Uncached:
    """A policy that encodes the graph in every step, as any policy does."""

    def __init__(self, actor):
        self.policy = actor

    def __call__(self, root):
        return self.policy(root)


def salesman(worlds=12, cities=(4, 6)):
    env = ew.make_env("tsp", num_envs=worlds, num_cities=cities)
    torch.manual_seed(0)
    return env, make_actor_critic(env.graph, env.actions, MODEL).actor


def returns(env, policy, how, seed=7):
    return evaluate(env, policy, episodes=env.num_envs, seed=seed, decode=Decoding.parse(how)).returns


@pytest.mark.parametrize("how", ["greedy", "multistart", "multistart:3", "beam:3", "guided:2"])
def test_encoding_once_decodes_the_same(how):
    env, actor = salesman()
    np.testing.assert_allclose(
        returns(env, actor, how), returns(env, Uncached(actor), how), rtol=1e-5, atol=1e-5
    )


def test_more_samples_are_never_worse():
    env, actor = salesman()
    few, many = returns(env, actor, "sample:4"), returns(env, actor, "sample:40")
    assert (many >= few - 1e-9).all()
    assert (many > few).any()


def test_a_guided_beam_is_never_worse_than_greedy():
    greedy, guided = decoded("greedy"), decoded("guided:2")
    assert (guided.returns >= greedy.returns - 1e-9).all()
    assert guided.trajectories == 2


def test_a_guided_beam_that_tries_all_finds_the_best():
    np.testing.assert_allclose(decoded("guided:60").returns, brute_force(), atol=1e-5)


def test_a_guided_beam_follows_simulations_and_not_probabilities():
    """With one place the next step is the action whose greedy continuation is best, of the two likeliest."""
    env = picking(num_envs=10)
    policy = actor_for(env)
    found = evaluate(env, policy, episodes=10, seed=5, decode=Decoding.parse("guided:2")).returns
    beam = evaluate(env, policy, episodes=10, seed=5, decode=Decoding.parse("beam:2")).returns
    assert found.mean() >= beam.mean()
    assert (found != beam).any()


def test_symmetries_give_the_best_of_all_of_them():
    env, actor = salesman()
    every = []
    for number in range(8):
        env.set_seed(7)
        state = env.reset()["state"]
        turned = env.apply_symmetry(state, torch.full((env.num_envs,), number))
        start = state.clone().update(dict(turned))
        found = evaluate(env, actor, episodes=env.num_envs, seed=7, start=start)
        every.append(found.returns)
    best = np.max(every, axis=0)
    np.testing.assert_allclose(returns(env, actor, "greedy+symmetries"), best, atol=1e-5)
    assert (best > every[0]).any()


def test_symmetries_and_starts_find_the_shortest_tours():
    env, actor = salesman(cities=5)
    env.set_seed(7)
    place = env.reset()["state", "place"].double()
    best = [
        min(
            float((row[list(tour)] - row[list(tour)].roll(-1, 0)).norm(dim=-1).sum())
            for tour in itertools.permutations(range(5))
        )
        for row in place
    ]
    found = -returns(env, actor, "guided:4+symmetries")
    assert (found >= np.array(best) - 1e-5).all()
    assert np.mean(found / np.array(best)) < 1.01


def test_environments_without_symmetries_say_so():
    with pytest.raises(ew.ConfigError, match="knows no symmetries"):
        decoded("greedy+symmetries")


@pytest.mark.parametrize("text", ["guided", "guided:0", "beam+symmetries", "+symmetries", "greedy+symmetry"])
def test_wrong_forms_are_refused(text):
    with pytest.raises(ew.ConfigError, match="expected greedy"):
        Decoding.parse(text)


@pytest.mark.parametrize("text", ["guided:4", "greedy+symmetries", "multistart:3+symmetries"])
def test_forms_are_written_as_they_are_read(text):
    assert str(Decoding.parse(text)) == text
