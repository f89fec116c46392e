"""Imitation of a router: exact on states never learnt from, and as good when it routes by itself."""

import pytest
import torch

from edgewise.algorithms.clone import Clone
from edgewise.algorithms.config import CloneConfig
from edgewise.data.demonstrations import ExpertMixture
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.multihop.baselines import BASELINES

MODEL = ModelConfig(encoder=EncoderConfig(hidden=16, layers=1, heads=2), head_hidden=(32,))


def cloned(expert, *, batches):
    env = make_env("multihop", networks=("cross",), num_envs=32, seed=0, max_steps=100)
    torch.manual_seed(0)
    config = CloneConfig(updates=40, minibatch_size=64, learning_rate=3e-3)
    algorithm = Clone(make_actor_critic(env.graph, env.actions, MODEL), config, expert=BASELINES[expert](env))
    for batch in range(batches):
        share = max(0.0, 1.0 - batch / 2)
        mixture = ExpertMixture(algorithm.expert, algorithm.policy, expert_share=lambda share=share: share)
        algorithm.learn(Rollout(env, mixture, rollout_length=25, keep_state=True).collect())
    return algorithm


def backlog(env, policy):
    return evaluate(env, policy, episodes=env.num_envs, seed=5).metrics["backlog"].mean()


def test_a_clone_routes_as_its_expert_does():
    expert = "spbp"
    algorithm = cloned(expert, batches=3)
    env = make_env("multihop", networks=("cross",), num_envs=32, seed=9, max_steps=150)
    fresh = algorithm.label(
        Rollout(env, BASELINES[expert](env), rollout_length=100, keep_state=True).collect()
    )
    assert float(algorithm.match(fresh)) >= 0.97
    taught, expected = backlog(env, algorithm.policy), backlog(env, BASELINES[expert](env))
    assert taught == pytest.approx(expected, rel=0.05)
    assert taught < 0.9 * backlog(env, BASELINES["backpressure"](env))
