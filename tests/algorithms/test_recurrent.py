"""Agents that remember: chunks against single steps, what must be forgotten, and a task that needs it."""

import pytest
import torch
from tests.algorithms.worlds import SETTINGS, Signals, ToyConfig, batches, learner, mean_reward, toy

from edgewise.config.errors import ConfigError
from edgewise.data.chunks import split_into_chunks
from edgewise.data.rollout import Rollout
from edgewise.evaluation.evaluate import evaluate
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.graphs.keys import RECURRENT
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig

ENCODER = EncoderConfig(hidden=16, layers=1, heads=2)
REMEMBERS = ModelConfig(encoder=ENCODER, head_hidden=(16,), recurrent=True, policy_gain=1.0)
STEPS, CHUNK = 12, 4


class Recall(Signals):
    """As signals, but what to do is only shown in the first step, and done in every other."""

    def advance(self, state, action):
        moved = super().advance(state, action)
        moved.state["signal"] = state["signal"]
        return moved

    def observe(self, state):
        seen = super().observe(state)
        seen["graph"]["x"] = seen["graph"]["x"] * (state["step"] == 0).view(-1, 1, 1)
        return seen


def collected(model=REMEMBERS, *, envs=6):
    """An algorithm and its second rollout: episodes of 4 steps, cut anywhere by rollouts of 10 before."""
    env = toy("signals", num_envs=envs)
    env.max_steps = 5
    algorithm = learner(env, model=model, config=SETTINGS.model_copy(update={"chunk_length": CHUNK}))
    rollout = Rollout(env, algorithm.policy, rollout_length=STEPS)
    rollout.collect()
    return algorithm, rollout.collect().clone()


def log_probs(algorithm, chunks):
    """Log-probabilities of what was done, and values, each chunk unrolled from its first memory."""
    with torch.no_grad():
        distribution, value = algorithm.actor_critic.evaluate(chunks)
    acting = chunks["agents", "active"]
    return distribution.log_prob(chunks["action"])[acting], chunks["action_log_prob"][acting], value


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("critic", ["node", "central"])
@pytest.mark.parametrize("length", [1, 3, 4, 12])
def test_chunks_repeat_what_single_steps_did(shared, critic, length):
    algorithm, batch = collected(
        REMEMBERS.model_copy(update={"shared_trunk": shared, "critic": critic}), envs=3
    )
    assert batch["next", "done"][:, :-1].any()
    now, then, value = log_probs(algorithm, split_into_chunks(batch, length))
    assert torch.allclose(now, then, atol=1e-6)
    with torch.no_grad():
        stepwise = algorithm.actor_critic.critic(batch.copy())["state_value"]
    assert torch.allclose(value.flatten(0, 1), stepwise.flatten(0, 1), atol=1e-6)


def test_chunks_across_two_worlds_would_show():
    algorithm, batch = collected()
    astray = split_into_chunks(batch.transpose(0, 1).contiguous()[: STEPS // 2].reshape(3, STEPS), CHUNK)
    now, then, _ = log_probs(algorithm, astray)
    assert not torch.allclose(now, then, atol=1e-3)


def test_memory_that_outlived_its_episode_would_show():
    algorithm, batch = collected()
    batch["next", "done"] = torch.zeros_like(batch["next", "done"])
    now, then, _ = log_probs(algorithm, split_into_chunks(batch, STEPS))
    assert not torch.allclose(now, then, atol=1e-3)


def test_a_chunk_is_one_world_s_steps_in_a_row():
    _, batch = collected()
    world = torch.arange(6).view(6, 1).expand(6, STEPS)
    batch["world"], batch["time"] = world, torch.arange(STEPS).expand(6, STEPS)
    chunks = split_into_chunks(batch, CHUNK)
    assert chunks.batch_size == (6 * STEPS // CHUNK, CHUNK)
    assert (chunks["world"] == chunks["world"][:, :1]).all()
    assert (chunks["time"].diff(dim=-1) == 1).all()


@pytest.mark.parametrize(("longest", "length"), [(1, 1), (5, 4), (6, 6), (7, 6), (12, 12), (99, 12)])
def test_chunks_fill_a_rollout_evenly(longest, length):
    _, batch = collected(envs=2)
    assert split_into_chunks(batch, longest).batch_size == (2 * STEPS // length, length)


def test_memory_is_carried_and_forgotten_at_the_end_of_an_episode():
    _, batch = collected()
    for name in ("actor", "critic"):
        before, after = batch[RECURRENT, name][:, 1:], batch["next", RECURRENT, name][:, :-1]
        ended = batch["next", "done"][:, :-1].unsqueeze(-1)
        assert torch.equal(before, after.masked_fill(ended, 0.0))
        assert ended.any()
        assert (after != 0).any()


def test_the_ratio_before_any_update_is_exactly_one():
    env = toy("signals")
    config = SETTINGS.model_copy(update={"epochs": 1, "chunk_length": 4})
    algorithm = learner(env, model=REMEMBERS, config=config)
    for batch in batches(env, algorithm, 3):
        metrics = algorithm.learn(batch)
        assert metrics["ratio_start"].item() == 1.0
        assert metrics["ratio_first"].item() == pytest.approx(1.0, abs=1e-5)
        assert all(value.isfinite() for value in metrics.values())


def test_learning_reaches_back_through_a_chunk_and_no_further():
    algorithm, batch = collected()
    chunks = split_into_chunks(batch, CHUNK)
    chunks["next", "done"] = torch.zeros_like(chunks["next", "done"])
    h = torch.randn(*chunks.batch_size, 4, 16, requires_grad=True)
    algorithm.policy.memory.unroll(h, chunks)[:, -1, :, 0].sum().backward()
    assert (h.grad[:, 0, :3] != 0).any(-1).all()
    with_end = chunks.clone()
    with_end["next", "done"][:, 1] = True
    h.grad = None
    algorithm.policy.memory.unroll(h, with_end)[:, -1, :, 0].sum().backward()
    assert (h.grad[:, :2] == 0).all()


def test_a_rollout_goes_on_with_what_was_remembered():
    env, other = toy("signals", num_envs=4), toy("signals", num_envs=4, seed=9)
    algorithm = learner(env, model=REMEMBERS)
    first, second = (Rollout(each, algorithm.policy, rollout_length=3) for each in (env, other))
    first.collect()
    second.load_state_dict(first.state_dict())
    torch.manual_seed(5)
    expected = first.collect().clone()
    torch.manual_seed(5)
    assert (expected == second.collect()).all()
    assert (expected[RECURRENT, "actor"][:, 0] != 0).any()


def test_what_was_shown_once_is_done_later_by_those_who_remember():
    """Who looks at the present alone is right in the first of four steps and in half of the others."""
    forgetful = (1 + 3 / 2) / 4
    env = Recall(ToyConfig(max_steps=4), num_envs=32, seed=0)
    model = REMEMBERS.model_copy(update={"policy_gain": 0.01})
    config = SETTINGS.model_copy(update={"chunk_length": 4, "gamma": 0.9})
    algorithm = learner(env, model=model, config=config)
    for batch in batches(env, algorithm, 30, steps=8):
        algorithm.learn(batch)
    assert mean_reward(batch) > 0.9 > forgetful
    played = evaluate(Recall(ToyConfig(max_steps=4), num_envs=32), algorithm.policy, episodes=32, seed=3)
    assert played.returns.mean() / 4 > forgetful


def test_memory_is_of_agents():
    env = toy("marked")
    with pytest.raises(ConfigError, match="recurrent models have one hidden state per agent"):
        make_actor_critic(env.graph, env.actions, REMEMBERS)


@pytest.mark.parametrize("algorithm", ["clone", "reinforce"])
def test_who_learns_from_single_steps_refuses_memory(algorithm):
    expert = {"algorithm.expert": "straight"} if algorithm == "clone" else {}
    config = load_config("swarm", algorithm=algorithm, keywords={"model.recurrent": True} | expert)
    with pytest.raises(ConfigError, match=f"model.recurrent: {algorithm} learns from single steps"):
        _ = Builder(config, num_envs=2, rollout_length=2).algorithm
