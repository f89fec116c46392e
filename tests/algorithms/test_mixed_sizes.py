"""Worlds of very different sizes: what is stored without empty slots is learned from as if it had them."""

import pytest
import torch
from benchmarks.mixed_sizes import MarksConfig, MarksEnv

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.deciders import deciders_of
from edgewise.algorithms.dqn import DQN
from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data import rollout as rollouts
from edgewise.data.random_policy import RandomPolicy
from edgewise.data.rollout import Rollout
from edgewise.graphs.ragged import Ragged, padded
from edgewise.models import actor_critic, graph_features
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig, ValueConfig

ENCODER = EncoderConfig(hidden=16, heads=2, layers=1)


def is_ragged(batch):
    return any(isinstance(value, Ragged) for value in batch.values(True, True))


def worlds():
    """One graph of 100 nodes and 31 of 6, whose episodes end after five steps."""
    env = MarksEnv(MarksConfig(largest=400, others=6), num_envs=32, seed=0)
    env.max_steps = 5
    return env


def ppo_in(env):
    torch.manual_seed(0)
    model = ModelConfig(encoder=ENCODER, policy_gain=1.0)
    return PPO(make_actor_critic(env.graph, env.actions, model), PPOConfig(epochs=2, minibatch_size=64))


def dqn_in(env):
    torch.manual_seed(0)
    config = DQNConfig(replay_size=200, minibatch_size=32, learning_starts=0, n_step=2, epsilon=0.5)
    return DQN(deciders_of(env, ValueConfig(encoder=ENCODER, hidden=16)), config=config)


def everything_padded(monkeypatch):
    monkeypatch.setattr(rollouts, "pays", lambda _: False)
    for module in (actor_critic, graph_features):
        monkeypatch.setattr(module, "size_classes", lambda *_, **__: None)


def batches(count=3):
    env = worlds()
    rollout = Rollout(env, RandomPolicy(env.actions, env.graph, seed=1), rollout_length=4)
    return [rollout.collect().clone() for _ in range(count)]


def test_batches_are_those_with_empty_slots(monkeypatch):
    mine = batches()
    everything_padded(monkeypatch)
    for batch, expected in zip(mine, batches(), strict=True):
        assert is_ragged(batch)
        assert not is_ragged(expected)
        batch, exists = padded(batch), expected["graph", "node_mask"]
        assert torch.equal(batch["graph", "x"][exists], expected["graph", "x"][exists])
        links = expected["graph", "edge_mask"].unsqueeze(2).expand_as(expected["graph", "edge_index"])
        assert torch.equal(batch["graph", "edge_index"][links], expected["graph", "edge_index"][links])
        for name in (
            ("graph", "node_mask"),
            "action_mask",
            "action",
            ("next", "action_mask"),
            ("next", "reward"),
        ):
            assert torch.equal(batch[name], expected[name]), name


def losses(make):
    env = worlds()
    algorithm, found = make(env), []
    for batch in batches():
        batch.set("action_log_prob", torch.full(batch.batch_size, -2.0))
        metrics = algorithm.learn(batch)
        found.append({name: float(metrics[name]) for name in metrics if "loss" in name or "value" in name})
    return found


@pytest.mark.parametrize("make", [ppo_in, dqn_in])
def test_learning_is_that_with_empty_slots(make, monkeypatch):
    mine = losses(make)
    everything_padded(monkeypatch)
    for found, expected in zip(mine, losses(make), strict=True):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("make", [ppo_in, dqn_in])
def test_a_run_is_continued_bit_for_bit(make):
    def parts():
        env = worlds()
        algorithm = make(env)
        return algorithm, Rollout(env, algorithm.behaviour, rollout_length=4)

    algorithm, rollout = parts()
    for _ in range(2):
        algorithm.learn(rollout.collect())
    state, collected, draws = algorithm.state_dict(), rollout.state_dict(), torch.get_rng_state()
    expected = [algorithm.learn(rollout.collect()) for _ in range(2)]
    again, resumed = parts()
    again.load_state_dict(state)
    resumed.load_state_dict(collected)
    torch.set_rng_state(draws)
    for metrics in expected:
        found = again.learn(resumed.collect())
        assert all(torch.equal(found[name], value) for name, value in metrics.items())


def test_transitions_cost_what_they_hold(monkeypatch):
    dqn = dqn_in(worlds())
    for batch in batches():
        dqn.learn(batch)
    sample = dqn.replay_buffer.sample()
    assert isinstance(sample["observation", "graph", "edge_index"], Ragged)
    mine = dqn.replay_buffer.bytes_per_transition
    everything_padded(monkeypatch)
    plain = dqn_in(worlds())
    for batch in batches():
        plain.learn(batch)
    assert mine < plain.replay_buffer.bytes_per_transition / 6


@pytest.mark.parametrize("settings", [{"retrace": 0.9, "n_step": 3}, {"n_step": 3}], ids=["paths", "steps"])
def test_paths_are_learned_from_too(settings, monkeypatch):
    def values():
        torch.manual_seed(0)
        config = DQNConfig(replay_size=200, minibatch_size=32, learning_starts=0, **settings)
        env, model = worlds(), ValueConfig(encoder=ENCODER, hidden=16)
        dqn = DQN(deciders_of(env, model, paths="retrace" in settings), config=config)
        return [float(dqn.learn(batch)["value"]) for batch in batches()]

    found = values()
    everything_padded(monkeypatch)
    assert found == pytest.approx(values(), rel=1e-3, abs=1e-5)


def test_an_encoder_of_a_fixed_size_gets_all_slots():
    env = worlds()
    torch.manual_seed(0)
    model = make_actor_critic(
        env.graph, env.actions, ModelConfig(encoder=EncoderConfig(kind="mlp", hidden=8))
    )
    metrics = PPO(model, PPOConfig(epochs=1)).learn(Rollout(env, model.actor, rollout_length=4).collect())
    assert metrics["policy_loss"].isfinite()
    value = ValueConfig(encoder=EncoderConfig(kind="mlp", hidden=8), hidden=8)
    dqn = DQN(deciders_of(env, value), config=DQNConfig(replay_size=200, minibatch_size=8, learning_starts=0))
    assert dqn.learn(batches(1)[0])["loss"].isfinite()
