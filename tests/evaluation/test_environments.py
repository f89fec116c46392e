"""Evaluations of our own environments, against what is known of them beforehand and against a plain loop."""

import functools

import numpy as np
import torch

from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate


def test_the_shortest_path_is_as_long_as_the_distance():
    from edgewise.systems.graphwalk.baselines import BASELINES

    env = make_env("graphwalk", num_envs=40, seed=3, num_nodes=(4, 14))
    got = evaluate(env, BASELINES["shortest_path"](env), episodes=40, seed=3, record=40)
    distance = [int(states["shortest"][0]) for states in got.recordings]
    assert got.env == "graphwalk"
    assert got.lengths.tolist() == distance
    np.testing.assert_array_equal(got.returns, -got.lengths)
    assert got.success.all()
    assert len(set(distance)) > 1


def test_random_walks_stop_at_the_environments_own_limit():
    make = functools.partial(make_env, "graphwalk", num_nodes=20, max_steps=9)
    env = make(num_envs=30, seed=0)
    got = evaluate(make, env.rand_action, episodes=30, seed=0, deterministic=False)
    assert got.lengths.max() == 9
    assert got.finished.all()
    assert 0 < got.success.mean() < 1


def test_agents_returns_are_those_of_a_plain_loop():
    from edgewise.systems.swarm.baselines import BASELINES

    env = make_env("swarm", num_envs=6, seed=4)
    policy = BASELINES["straight"](env)
    got = evaluate(env, policy, episodes=6, seed=4)
    env.set_seed(4)
    root, totals, over = env.reset(), torch.zeros(6, env.num_agents), torch.zeros(6, dtype=torch.bool)
    while not over.all():
        following = env.step(policy(root.clone()))["next"]
        for world in range(6):
            for agent in range(env.num_agents):
                if not over[world] and root["agents", "active"][world, agent]:
                    totals[world, agent] += following["reward"][world, agent, 0]
        over = over | following["done"].squeeze(-1)
        root = following.exclude("reward")
    np.testing.assert_allclose(got.agent_returns, totals.numpy(), rtol=1e-4)
    np.testing.assert_allclose(got.returns, totals.mean(-1).numpy(), rtol=1e-4)
