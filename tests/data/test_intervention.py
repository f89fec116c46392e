"""Interventions: who acts where, that the actor learns nothing from the expert's steps, and stability."""

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.config.errors import ConfigError
from edgewise.data.intervention import Intervention
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments.build import Builder
from edgewise.experiments.evaluate import evaluate_run
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.queueing.baselines import MaxWeight

SMALL = ModelConfig(encoder=EncoderConfig(hidden=16, layers=1, heads=2), head_hidden=(16,))


def guarded(*, above, arrival_rate=0.4, num_envs=32, **settings):
    env = make_env("queueing", num_envs=num_envs, seed=0, arrival_rate=arrival_rate, **settings)
    torch.manual_seed(0)
    config = PPOConfig(epochs=1, minibatch_size=4096, max_grad_norm=1e9)
    algorithm = PPO(make_actor_critic(env.graph, env.actions, SMALL), config)
    policy = Intervention(
        algorithm.policy, MaxWeight(env), load=lambda root: env.load(root["state"]), above=above
    )
    return env, algorithm, policy


def test_the_expert_acts_exactly_where_more_wait_than_allowed():
    env, _, policy = guarded(above=4.0)
    batch = Rollout(env, policy, rollout_length=64, keep_state=True).collect()
    wait = batch["state", "queues"].sum(-1)
    assert torch.equal(batch["intervened"], wait > 4)
    assert 0.1 < batch["intervened"].float().mean() < 0.9
    helped = MaxWeight(env)(batch.reshape(-1).exclude("next"))["action"].view_as(batch["action"])
    strained = batch["intervened"]
    assert torch.equal(batch["action"][strained], helped[strained])
    assert not torch.equal(batch["action"][~strained], helped[~strained])


def test_log_probabilities_of_the_learners_own_steps_are_its_own():
    env, algorithm, policy = guarded(above=4.0)
    batch = Rollout(env, policy, rollout_length=32).collect().reshape(-1)
    own = batch[~batch["intervened"]]
    with torch.no_grad():
        expected = algorithm.policy.get_dist(own).log_prob(own["action"])
    torch.testing.assert_close(own["action_log_prob"], expected)


def updated(algorithm, batch):
    """How one update moves actor and critic, weights side by side, and its metrics."""
    before = {name: value.clone() for name, value in algorithm.actor_critic.state_dict().items()}
    torch.manual_seed(1)
    metrics = algorithm.learn(batch)
    after = algorithm.actor_critic.state_dict()
    moved = {name: (after[name] - old).flatten() for name, old in before.items()}
    actor, critic = (
        torch.cat([change for name, change in moved.items() if name.startswith(part)])
        for part in ("actor.", "critic.")
    )
    return actor, critic, metrics


def test_the_actor_learns_nothing_from_steps_that_were_not_its_own():
    env, algorithm, policy = guarded(above=0.0, initial_queue=3)
    batch = Rollout(env, policy, rollout_length=8).collect().clone()
    batch["intervened"] = torch.ones_like(batch["intervened"])
    actor, critic, metrics = updated(algorithm, batch)
    assert not actor.any()
    assert critic.any()
    assert all(torch.isfinite(value) for value in metrics.values())


def test_what_the_expert_did_does_not_change_what_the_actor_learns():
    env, algorithm, policy = guarded(above=4.0)
    batch = Rollout(env, policy, rollout_length=32).collect().clone()
    other = batch.clone()
    strained = batch["intervened"]
    other["action"][strained] = torch.tensor([True, True, True])
    other["action_log_prob"][strained] = 123.0
    actor, critic, _ = updated(algorithm, batch)
    _, again, _ = guarded(above=4.0)
    other_actor, other_critic, _ = updated(again, other)
    assert actor.any()
    assert torch.equal(other_actor, actor)
    assert torch.equal(other_critic, critic)


def test_worlds_stay_stable_however_bad_the_learner_is():
    env, _, _ = guarded(above=0.0, arrival_rate=0.45, num_envs=16, max_steps=2000)

    def idle(root: TensorDict) -> TensorDict:
        return root.set("action", torch.zeros_like(root["action_mask"]))

    policy = Intervention(idle, MaxWeight(env), load=lambda root: env.load(root["state"]), above=20.0)
    batch = Rollout(env, policy, rollout_length=900).collect()
    assert not batch["next", "truncated"].any()
    assert -batch["next", "reward"][:, 300:].mean() == pytest.approx(21, abs=3)


def test_a_run_is_guarded_in_training_and_when_it_is_measured(tmp_path):
    """The untrained policy alone overflows; guarded, it has about the threshold waiting."""
    settings = {
        "total_frames": 512,
        "num_envs": 16,
        "rollout_length": 32,
        "algorithm.intervention": "maxweight",
        "algorithm.intervention_above": 10.0,
        "env.arrival_rate": 0.45,
        "evaluation.episodes": 4,
        "evaluation.settings": {"initial_queue": 0, "max_steps": 20},
        "evaluation.baselines": [],
        "checkpoint.every": 512,
    }
    config = load_config("queueing-line3-ppo", keywords=settings)
    assert isinstance(Builder(config).parts().rollout.policy, Intervention)
    folder = start(config, folder=tmp_path / "run")
    found = evaluate_run(folder, EvaluationRequest(settings={"max_steps": 300}, episodes=8, seed=3))[0]
    assert np.mean(found.metrics["backlog"]) < 20


@pytest.mark.parametrize(
    ("recipe", "name", "complaint"),
    [("queueing-line3-ppo", "min-weight", "no baseline"), ("graphwalk-ppo", "greedy", "strain|no baseline")],
)
def test_an_intervention_that_cannot_be_is_refused(recipe, name, complaint):
    config = load_config(recipe, keywords={"algorithm.intervention": name, "training.num_envs": 2})
    with pytest.raises(ConfigError, match=complaint):
        Builder(config).parts()


def test_actions_of_the_expert_have_no_log_probability():
    env, _, policy = guarded(above=4.0)
    batch = Rollout(env, policy, rollout_length=32).collect()
    assert not batch["action_log_prob"][batch["intervened"]].any()
    assert batch["action_log_prob"][~batch["intervened"]].abs().sum() > 0
