"""Guided PPO: the expert's pull is the exact surprise, fades with its weight, and spares the impossible."""

import pytest
import torch
from tests.algorithms.experts import EXPERTS, GUIDED, guided
from tests.algorithms.worlds import batches, learner, mean_reward, toy

from edgewise.algorithms.config import PPOConfig
from edgewise.data.rollout import Rollout
from edgewise.recipes.guide import build
from edgewise.recipes.load import load_config


def weights(algorithm):
    return torch.cat([p.detach().flatten().clone() for p in algorithm.actor_critic.parameters()])


@pytest.mark.parametrize("name", ["marked", "signals"])
def test_without_guidance_it_is_ppo(name):
    plain = PPOConfig(
        **{key: value for key, value in GUIDED.model_dump().items() if key in PPOConfig.model_fields}
    )
    results = []
    for build_one, config in ((learner, plain), (guided, GUIDED.model_copy(update={"guidance": 0.0}))):
        env = toy(name)
        algorithm = build_one(env, config=config)
        for batch in batches(env, algorithm, 2):
            algorithm.learn(batch)
        results.append(weights(algorithm))
    assert torch.equal(*results)


def test_the_loss_is_that_of_ppo_and_the_weighted_surprise():
    env = toy("signals")
    algorithm = guided(env, config=GUIDED.model_copy(update={"guidance": 0.7}))
    batch = Rollout(env, algorithm.policy, steps=8).collect()
    samples, _ = algorithm._advantages(batch)
    terms = {"value_weight": 0.5, "entropy_weight": 0.0}
    loss, _ = algorithm._loss(samples, 0.2, **terms)
    without, _ = algorithm._loss(samples.exclude("expert_action"), 0.2, **terms)
    flat = batch.exclude("next").reshape(-1)
    wanted = EXPERTS["Signals"](flat.copy())["action"]
    active = flat["agents", "active"]
    surprise = -algorithm.policy.get_dist(flat).log_prob(wanted)[active].mean()
    torch.testing.assert_close(loss - without, 0.7 * surprise)


def test_guidance_alone_teaches_what_earns_nothing_at_once():
    """Rewards are gone; the expert is followed all the same."""
    env = toy("marked")
    algorithm = guided(env)
    for batch in batches(env, algorithm, 8):
        earned = mean_reward(batch)
        batch["next", "reward"].zero_()
        algorithm.learn(batch)
    assert earned > 0.9


def test_what_the_actor_can_never_do_does_not_count():
    env = toy("marked")

    def forbidden(root):
        return root.set("action", (~root["action_mask"]).int().argmax(-1))

    algorithm = guided(env)
    algorithm.expert = forbidden
    metrics = algorithm.learn(next(batches(env, algorithm, 1)))
    assert all(value.isfinite() for value in metrics.values())
    assert weights(algorithm).isfinite().all()


def test_guidance_without_an_expert_is_refused():
    env = toy("marked")
    algorithm = guided(env)
    algorithm.expert = None
    with pytest.raises(ValueError, match="needs an expert"):
        algorithm.learn(next(batches(env, algorithm, 1)))


def test_a_guided_run_collects_with_its_own_actor_and_keeps_the_state():
    config = load_config(
        "queueing-family-guided",
        keywords={
            "training.num_envs": 4,
            "training.steps": 4,
            "evaluation.episodes": 2,
            "evaluation.baselines": [],
        },
    )
    parts = build(config)
    batch = parts.rollout.collect()
    assert {"state", "action"} <= set(batch.keys())
    assert parts.rollout.policy is parts.algorithm.policy
    assert parts.algorithm.learn(batch)["loss"].isfinite()
