"""PPO: its loss against TorchRL's, its first ratio, its schedules, and what must not matter to it."""

import logging

import pytest
import torch
import torch._dynamo.testing
from tensordict import TensorDict
from tests.algorithms.worlds import SETTINGS, SMALL, batches, learner, mean_reward, toy
from torch import nn
from torchrl.objectives import ClipPPOLoss

from edgewise.algorithms.config import PPOConfig, SelfPlayConfig
from edgewise.algorithms.decisions import log_ratio_of
from edgewise.data.rollout import Rollout
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.objectives.graph_gae import GraphGAE

CONVS = ["GATv2Conv", "TransformerConv", "GINEConv", "SAGEConv", "GENConv", "GCNConv"]
ENCODERS = [
    *({"kind": "gnn", "conv": conv} for conv in CONVS),
    {"kind": "transformer", "dense": "never"},
    {"kind": "transformer", "dense": "always"},
    {"kind": "transformer", "compact": True},
    {"kind": "mlp"},
]


def one_batch(algorithm, env, *, steps=16):
    return next(batches(env, algorithm, 1, steps=steps))


def weights(algorithm):
    return {name: value.clone() for name, value in algorithm.state_dict()["actor_critic"].items()}


@pytest.mark.parametrize("name", ["marked", "signals", "dials"])
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda each: "-".join(map(str, each.values())))
def test_the_ratio_before_any_update_is_exactly_one(name, encoder):
    env = toy(name)
    config = EncoderConfig(hidden=16, layers=2, heads=2, **encoder)
    algorithm = learner(
        env, model=ModelConfig(encoder=config), config=SETTINGS.model_copy(update={"epochs": 1})
    )
    for batch in batches(env, algorithm, 2):
        metrics = algorithm.learn(batch)
        assert metrics["ratio_start"].item() == 1.0
        assert metrics["ratio_first"].item() == pytest.approx(1.0, abs=1e-4)
        assert all(value.ndim == 0 and value.isfinite() for value in metrics.values())


def test_dropout_shows_in_the_first_ratio_and_is_said_once(caplog):
    env = toy("signals")
    algorithm = learner(env, model=SMALL.model_copy(update={"policy_gain": 1.0}))
    algorithm.policy.encoder.register_forward_hook(
        lambda encoder, _, h: torch.nn.functional.dropout(h, 0.3, encoder.training)
    )
    with caplog.at_level(logging.WARNING):
        for batch in batches(env, algorithm, 2):
            assert algorithm.learn(batch)["ratio_start"] > 1.01
    assert len([record for record in caplog.records if "before the first update" in record.message]) == 1


@pytest.mark.parametrize("name", ["marked", "signals"])
def test_the_first_update_is_that_of_torchrls_loss(name):
    """Same gradient as `ClipPPOLoss` on the whole batch, with all agents acting and ratios away from 1."""
    env = toy(name)
    config = PPOConfig(epochs=1, minibatch_size=10_000, entropy_coefficient=0.03, max_grad_norm=1e9, clip=0.1)
    algorithm, other = learner(env, config=config), learner(env, config=config)
    batch = one_batch(algorithm, env)
    batch["action_log_prob"] += 0.2 * torch.randn_like(batch["action_log_prob"])
    if name == "signals":
        batch["agents", "active"] = torch.ones_like(batch["agents", "active"])
        batch["next", "agents", "terminated"] = torch.zeros_like(batch["next", "agents", "terminated"])
    metrics = algorithm.learn(batch)
    gae = GraphGAE(value_network=other.actor_critic.critic, gamma=0.99, lmbda=0.95, average_gae=True)
    reference = ClipPPOLoss(
        other.actor_critic.actor,
        other.actor_critic.critic,
        clip_epsilon=0.1,
        entropy_coeff=0.03,
        critic_coeff=0.25,
        loss_critic_type="l2",
        functional=False,
    )
    terms = reference(gae(batch.clone()).reshape(-1))
    loss = terms["loss_objective"] + terms["loss_critic"] + terms["loss_entropy"]
    loss.backward()
    torch.testing.assert_close(metrics["loss"], loss.detach(), rtol=1e-5, atol=1e-6)
    assert 0.1 < metrics["clipped"] < 0.9
    pairs = zip(algorithm.actor_critic.parameters(), other.actor_critic.parameters(), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_inactive_agents_change_nothing():
    env = toy("signals")
    first, second = learner(env), learner(env)
    batch = one_batch(first, env)
    idle = ~batch["agents", "active"]
    assert idle.any()
    other = batch.clone()
    other["action"] = torch.where(idle, 1 - batch["action"], batch["action"])
    other["action_log_prob"] = torch.where(idle, -torch.inf, batch["action_log_prob"])
    other["next", "reward"] = torch.where(idle.unsqueeze(-1), 1e6, batch["next", "reward"])
    first.learn(batch)
    second.learn(other)
    assert all(torch.equal(value, weights(second)[name]) for name, value in weights(first).items())


def test_a_batch_is_left_as_it_was():
    env = toy("signals")
    algorithm = learner(env)
    batch = one_batch(algorithm, env)
    before = batch.clone()
    algorithm.learn(batch)
    assert set(batch.keys(True, True)) == set(before.keys(True, True))
    assert (batch == before).all()


def test_every_sample_is_used_once_per_epoch_in_a_new_order():
    algorithm = learner(toy("marked"), config=SETTINGS.model_copy(update={"minibatch_size": 30}))
    samples = TensorDict({"number": torch.arange(100)}, [100])
    epochs = [[part["number"] for part in algorithm._minibatches(samples)] for _ in range(2)]
    for parts in epochs:
        assert [len(part) for part in parts] == [34, 33, 33]
        assert torch.cat(parts).sort().values.tolist() == list(range(100))
    assert torch.cat(epochs[0]).tolist() != torch.cat(epochs[1]).tolist()
    few = TensorDict({"number": torch.arange(4)}, [4])
    assert [len(part) for part in algorithm._minibatches(few)] == [4]


def test_a_world_keeps_its_agents_together():
    """A critic that pools agents sees whole worlds: every minibatch holds all agents of its graphs."""
    env = toy("signals")
    algorithm = learner(env)
    seen = []
    inner = algorithm._loss
    algorithm._loss = lambda samples: seen.append(samples.shape) or inner(samples)
    algorithm.learn(one_batch(algorithm, env))
    assert sum(shape.numel() for shape in seen) == SETTINGS.epochs * 32 * 16


def test_epochs_end_when_the_policy_has_moved_too_far():
    env = toy("marked")
    strict, free = (
        learner(env, config=SETTINGS.model_copy(update={"target_kl": bound, "minibatch_size": 256}))
        for bound in (1e-9, 1e9)
    )
    batch = one_batch(strict, env)
    assert strict.learn(batch)["updates"].item() == 2
    assert free.learn(batch)["updates"].item() == 2 * SETTINGS.epochs


def test_gradients_are_shortened_to_the_bound():
    env = toy("marked")
    algorithm = learner(env, config=SETTINGS.model_copy(update={"max_grad_norm": 1e-3}))
    metrics = algorithm.learn(one_batch(algorithm, env))
    assert metrics["gradient_norm"] > 0.01
    for part in (algorithm.actor_critic.actor, algorithm.actor_critic.critic):
        left = nn.utils.get_total_norm([each.grad for each in part.parameters()])
        assert left.item() == pytest.approx(1e-3, rel=1e-3)


def test_an_entropy_bonus_keeps_the_policy_open():
    env = toy("marked")
    closed, opened = (
        learner(env, config=SETTINGS.model_copy(update={"entropy_coefficient": weight}))
        for weight in (0.0, 10.0)
    )
    for algorithm in (closed, opened):
        for batch in batches(env, algorithm, 2):
            metrics = algorithm.learn(batch)
        algorithm.entropy = metrics["entropy"]
    assert opened.entropy > closed.entropy + 0.1


@pytest.mark.parametrize(
    "changed",
    [{"value_clip": 0.01}, {"huber_delta": 0.05}, {"value_clip": 0.01, "huber_delta": 0.05}],
    ids=lambda changed: "+".join(changed),
)
def test_the_critics_loss_has_variants(changed):
    env = toy("marked")
    plain, varied = learner(env), learner(env, config=SETTINGS.model_copy(update=changed))
    batch = one_batch(plain, env)
    one, other = plain.learn(batch)["value_loss"], varied.learn(batch)["value_loss"]
    assert other.isfinite()
    assert (one - other).abs() > 1e-4


def test_normalised_values_follow_returns_of_any_scale():
    env = toy("signals")
    config = SETTINGS.model_copy(update={"normalise_value": True})
    algorithm = learner(env, config=config)
    algorithm.value_norm.decay = 0.9
    for batch in batches(env, algorithm, 8):
        batch["next", "reward"] = 1000 * batch["next", "reward"] + 5000
        algorithm.learn(batch)
    assert mean_reward(batch) > 5900
    active = batch["agents", "active"]
    target = GraphGAE(
        value_network=algorithm.actor_critic.critic,
        gamma=config.gamma,
        lmbda=config.lmbda,
        value_transform=algorithm.value_norm.denormalise,
    )(batch)["value_target"][active]
    torch.testing.assert_close(algorithm.value_norm.mean, target.mean(), rtol=0.1, atol=0)
    predicted = algorithm.value_norm.denormalise(batch["state_value"][active])
    torch.testing.assert_close(predicted.mean(), target.mean(), rtol=0.05, atol=0)


def test_two_players_learn_from_opposite_signs():
    """With the mover alternating the advantages differ from a one-player reading of the same batch."""
    env = toy("marked")
    config = SelfPlayConfig(**SETTINGS.model_dump())
    algorithm = learner(env, config=config)
    batch = one_batch(algorithm, env)
    player = torch.arange(17).expand(32, 17) % 2
    batch["player"], batch["next", "player"] = player[:, :-1], player[:, 1:]
    samples, _ = algorithm._advantages(batch)
    expected = GraphGAE(
        value_network=algorithm.actor_critic.critic,
        gamma=config.gamma,
        lmbda=config.lmbda,
        two_player=True,
        average_gae=True,
    )(batch.clone())["advantage"]
    torch.testing.assert_close(samples["advantage"], expected.reshape(-1, 1), rtol=1e-5, atol=1e-6)


def test_numbers_are_scheduled_by_their_names():
    algorithm = learner(toy("marked"))
    assert algorithm.scalars()["clip"] == 0.2
    assert "target_kl" not in algorithm.scalars()
    algorithm.set_scalar("learning_rate", 1e-5)
    algorithm.set_scalar("epochs", 2.6)
    algorithm.set_scalar("target_kl", 0.02)
    algorithm.set_scalar("boundary_budget", 2.6)
    assert algorithm.config.boundary_budget == 3
    assert algorithm.optimizer.param_groups[0]["lr"] == 1e-5
    assert algorithm.config.epochs == 3
    assert algorithm.scalars()["target_kl"] == 0.02
    algorithm.set_scalar("learning_rate", 0.0)
    before = weights(algorithm)
    algorithm.learn(one_batch(algorithm, toy("marked")))
    assert all(torch.equal(value, before[name]) for name, value in weights(algorithm).items())


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("clup", 0.1, "clip"),
        ("clip", -0.1, "greater than 0"),
        ("normalise_value", 0.0, "no numeric setting"),
        ("intervention_above", 5.0, "is fixed and cannot change"),
    ],
)
def test_numbers_that_are_not_there_or_not_allowed_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        learner(toy("marked")).set_scalar(name, value)


def test_a_rollout_is_collected_by_the_policy_that_learns():
    env = toy("marked")
    algorithm = learner(env, model=SMALL)
    rollout = Rollout(env, algorithm.policy, rollout_length=8)
    first = rollout.collect().clone()
    algorithm.learn(first)
    with torch.no_grad():
        again = algorithm.policy.get_dist(first).log_prob(first["action"])
    assert not torch.equal(again, first["action_log_prob"])


def test_epochs_stop_once_the_policy_has_moved_further_than_the_target():
    env = toy("marked")
    made = {}
    for limit in (None, 1e9, 1e-9):
        algorithm = learner(env, config=SETTINGS.model_copy(update={"epochs": 4, "target_kl": limit}))
        made[limit] = algorithm.learn(one_batch(algorithm, env))["updates"].item()
    assert made[None] == made[1e9] == 4 * made[1e-9]


def test_agents_of_a_world_in_which_an_expert_acted_teach_the_actor_nothing():
    """The planted fault: a mask of active agents in place of the expert's, so that their actions count."""
    env = toy("signals")
    algorithm = learner(env, config=SETTINGS.model_copy(update={"epochs": 1, "max_grad_norm": 1e9}))
    batch = one_batch(algorithm, env).clone()
    batch["intervened"] = torch.ones(batch.batch_size, dtype=torch.bool)
    before = weights(algorithm)
    metrics = algorithm.learn(batch)
    after = weights(algorithm)
    assert all(torch.equal(after[name], old) for name, old in before.items() if name.startswith("actor."))
    assert any(
        not torch.equal(after[name], old) for name, old in before.items() if name.startswith("critic.")
    )
    assert metrics["policy_loss"] == 0


def test_an_expert_in_some_worlds_leaves_the_active_agents_of_the_others():
    env = toy("signals")
    algorithm = learner(env)
    samples = algorithm._advantages(one_batch(algorithm, env))[0]
    samples["intervened"] = torch.arange(len(samples)) % 3 == 0
    distribution = algorithm.policy.get_dist(samples)
    log_ratio, mask = log_ratio_of(distribution, samples)
    assert torch.equal(mask, samples["agents", "active"] & ~samples["intervened"].unsqueeze(-1))
    assert not log_ratio[~mask].any()
