"""Values that are written while collecting equal those that learning would compute, and are used."""

import pytest
import torch

import edgewise as ew
from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.decisions import corrected
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.graphs.keys import STALENESS
from edgewise.models.actor_critic import ValuingActor, make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig

SHARED = ModelConfig(
    encoder=EncoderConfig(hidden=16, layers=2, heads=2), critic="node", shared_trunk=True, head_hidden=(16,)
)
SETTINGS = PPOConfig(epochs=2, minibatch_size=64, normalise_value=True)


def learner(model=SHARED, **settings):
    """A learner and 8 swarms of 2 to 4 agents; episodes are truncated twice within a rollout."""
    env = ew.make_env("swarm", num_envs=8, seed=0, num_agents=(2, 4), max_steps=5, reward="individual")
    torch.manual_seed(0)
    actor_critic = make_actor_critic(env.graph, env.actions, model)
    return env, PPO(actor_critic, SETTINGS.model_copy(update=settings), seed=0)


def collected(env, algorithm):
    return Rollout(env, algorithm.behaviour, rollout_length=12).collect()


def graphs_seen(algorithm):
    """Count the graphs that pass through the encoder, in the list that is returned."""
    seen = []
    algorithm.actor_critic.critic.encoder.register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].numel())
    )
    return seen


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_advantages_equal_those_of_values_that_are_computed_again():
    env, algorithm = learner()
    batch = collected(env, algorithm)
    assert batch["next", "truncated"][:, :-1].any()
    again, _ = algorithm._advantages(batch.exclude("state_value"))
    found, _ = learner()[1]._advantages(batch)  # with value statistics that have not seen the batch
    for name in ("state_value", "value_target", "advantage"):
        close(found[name], again[name])


def test_only_states_after_boundaries_are_evaluated():
    env, algorithm = learner()
    batch = collected(env, algorithm)
    seen = graphs_seen(algorithm)
    algorithm._advantages(batch)
    boundaries = batch["next", "truncated"].clone()
    boundaries[:, -1] = True
    assert sum(seen) == int(boundaries.sum())


def test_a_batch_without_boundaries_evaluates_nothing():
    """Every world ends with the last step, and nothing is truncated."""
    env, algorithm = learner()
    batch = collected(env, algorithm)
    for name in ("done", "terminated"):
        batch["next", name].fill_(False)[:, -1] = True
    again, _ = algorithm._advantages(batch.exclude("state_value"))
    seen = graphs_seen(other := learner()[1])
    close(other._advantages(batch)[0]["advantage"], again["advantage"])
    assert not seen


def test_updates_equal_those_with_values_that_are_computed_again():
    env, algorithm = learner()
    batch = collected(env, algorithm)
    metrics, again = algorithm.learn(batch), learner()[1].learn(batch.exclude("state_value"))
    assert metrics.keys() == again.keys()
    for name, value in metrics.items():
        torch.testing.assert_close(value, again[name], rtol=1e-3, atol=1e-4)


def test_the_actor_acts_as_without_values():
    env, algorithm = learner()
    root = env.reset()
    torch.manual_seed(1)
    plain = algorithm.policy(root.clone())
    torch.manual_seed(1)
    valued = algorithm.behaviour(root.clone())
    assert torch.equal(plain["action"], valued["action"])
    assert torch.equal(plain["action_log_prob"], valued["action_log_prob"])
    assert torch.equal(valued["state_value"], algorithm.actor_critic.critic(root.clone())["state_value"])


def test_values_of_older_weights_are_computed_again():
    env, algorithm = learner()
    batch = collected(env, algorithm)
    batch["state_value"] = batch["state_value"] + 100.0
    batch.set(STALENESS, torch.ones(batch.batch_size, dtype=torch.int64))
    older, _ = corrected(batch, algorithm.policy, minibatch_size=64, group=algorithm.group)
    assert not algorithm._has_values(older)
    assert algorithm._advantages(older)[0]["state_value"].abs().max() < 50


def test_workers_follow_the_weights_of_the_values_too():
    _, algorithm = learner()
    names = {name for name, _ in algorithm.acting_module.named_parameters()}
    assert any(name.startswith("critic.value") for name in names)


@pytest.mark.parametrize("changes", [{"shared_trunk": False}, {"recurrent": True}])
def test_other_models_value_after_collecting(changes):
    env, algorithm = learner(SHARED.model_copy(update=changes))
    assert algorithm.behaviour is algorithm.policy
    assert "state_value" not in collected(env, algorithm)
    actor_critic = algorithm.actor_critic
    with pytest.raises(ValueError, match="shares its encoder"):
        ValuingActor(actor_critic.actor, actor_critic.critic)


def test_self_play_writes_values_of_the_learner():
    settings = {"env.size": 3, "training.num_envs": 16, "model.shared_trunk": True, "seed": 0}
    builder = Builder(load_config("hex-quick", keywords=settings))
    algorithm, batch = builder.algorithm, builder.collector.collect()
    again, _ = algorithm._advantages(batch.exclude("state_value"))
    assert algorithm._has_values(batch)
    close(algorithm._advantages(batch)[0]["advantage"], again["advantage"])
