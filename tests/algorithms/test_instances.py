"""Learning from instances that are encoded once is learning from the same steps, each with its graph."""

import pytest
import torch

import edgewise as ew
from edgewise.algorithms.config import PPOConfig, ReinforceConfig
from edgewise.algorithms.ppo import PPO
from edgewise.algorithms.reinforce import REINFORCE
from edgewise.data.instance_batch import steps_of
from edgewise.models.actor_critic import make_actor_critic
from edgewise.objectives.graph_gae import GraphGAE
from edgewise.objectives.instance_values import valued_steps

MODEL = ew.ModelConfig(encoder=ew.EncoderConfig(hidden=16, layers=1, heads=2))


def env_of(name="cvrp", worlds=12, **settings):
    return ew.make_env(name, num_envs=worlds, seed=0, **(settings or {"num_customers": (3, 5)}))


def model_of(env):
    torch.manual_seed(0)
    return make_actor_critic(env.graph, env.actions, MODEL)


def with_graphs(batch):
    """Return the steps of a batch of instances with a graph in each, `[1, M]`: the undivided batch."""
    steps, counted = batch["steps"], batch["steps", "counted"]
    graph = batch["graph"].unsqueeze(1).expand(*steps.batch_size)
    return steps.copy().set("graph", graph)[counted].exclude("counted").unsqueeze(0)


@pytest.mark.parametrize(
    "settings", [{}, {"credit": "best"}, {"credit": "leader"}, {"first_actions": "different"}]
)
def test_reinforce_makes_the_same_step(settings):
    env, weights = env_of(), []
    for undivided in (False, True):
        algorithm = REINFORCE(
            model_of(env).actor,
            ReinforceConfig(starts=4, minibatch_size=40, entropy_coefficient=0.01, **settings),
        )
        env.set_seed(1)
        torch.manual_seed(2)
        batch = algorithm.make_collector(env, rollout_length=1).collect()
        metrics = algorithm.learn(with_graphs(batch) if undivided else batch)
        gradient = torch.cat([each.grad.flatten() for each in algorithm.actor.parameters()])
        weights.append((gradient, metrics["policy_loss"], metrics["baseline"]))
    for one, other in zip(*weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_the_best_episode_alone_is_imitated():
    env = env_of()
    algorithm = REINFORCE(model_of(env).actor, ReinforceConfig(starts=4, credit="best", baseline="mean"))
    torch.manual_seed(2)
    batch = algorithm.make_collector(env, rollout_length=1).collect()
    flat = steps_of(batch)
    episode = flat["next", "done"].squeeze().long().cumsum(0) - flat["next", "done"].squeeze().long()
    returns = torch.zeros(12).index_add(0, episode, flat["next", "reward"].squeeze())
    best = returns.view(3, 4).argmax(1) + torch.arange(3) * 4
    steps = with_graphs(batch)[0][torch.isin(episode, best)]
    expected = -algorithm.actor.get_dist(steps).log_prob(steps["action"]).sum() / 3
    metrics = algorithm.learn(batch)
    torch.testing.assert_close(metrics["policy_loss"], expected, rtol=1e-4, atol=1e-5)


def test_the_leader_counts_more():
    env, losses = env_of(num_customers=(6, 8)), {}
    for weight in (1.0, 5.0):
        config = ReinforceConfig(starts=4, credit="leader", leader_weight=weight)
        algorithm = REINFORCE(model_of(env).actor, config)
        env.set_seed(1)
        torch.manual_seed(2)
        batch = algorithm.make_collector(env, rollout_length=1).collect()
        steps = with_graphs(batch)[0]
        done = steps["next", "done"].squeeze(-1).long()
        episode = done.cumsum(0) - done
        log_prob = algorithm.actor.get_dist(steps).log_prob(steps["action"]).detach()
        returns, likelihood = (
            torch.zeros(12).index_add(0, episode, each).view(3, 4)
            for each in (steps["next", "reward"].squeeze(-1), log_prob)
        )
        advantage = returns - returns.mean(1, keepdim=True)
        leads = returns == returns.amax(1, keepdim=True)
        expected = -(torch.where(leads, weight * advantage, advantage) * likelihood).sum() / 12
        losses[weight] = algorithm.learn(batch)["policy_loss"]
        torch.testing.assert_close(losses[weight], expected, rtol=1e-4, atol=1e-5)
    assert losses[1.0] != losses[5.0]


def test_values_of_instances_give_the_advantages_of_single_steps():
    env = env_of("max_cut", num_nodes=(6, 8), steps_per_node=1.0)
    algorithm = PPO(model_of(env), PPOConfig(gamma=0.9, lmbda=0.8))
    torch.manual_seed(2)
    batch = algorithm.make_collector(env, rollout_length=1).collect()
    critic = algorithm.actor_critic.critic
    with torch.no_grad():
        flat = valued_steps(batch, critic, steps_at_once=10)
        undivided = with_graphs(batch)
        following = undivided["next"].copy().set("graph", undivided["graph"])
        undivided.set("next", following)
        expected = GraphGAE(gamma=0.9, lmbda=0.8, value_network=critic)(undivided)
        found = GraphGAE(gamma=0.9, lmbda=0.8, value_network=None)(flat)
    assert flat["next", "truncated"].any()
    torch.testing.assert_close(found["advantage"], expected["advantage"], rtol=1e-4, atol=1e-5)


def test_ppo_makes_the_same_loss():
    env = env_of()
    algorithm = PPO(model_of(env), PPOConfig(epochs=1, minibatch_size=10**6, entropy_coefficient=0.02))
    torch.manual_seed(2)
    batch = algorithm.make_collector(env, rollout_length=1).collect()
    with torch.no_grad():
        samples, _ = algorithm._advantages(batch)
        flat = with_graphs(samples)[0]
        together, metrics = algorithm._loss(samples)
        alone, expected = algorithm._loss(flat)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-6)
    for name in ("policy_loss", "value_loss", "entropy"):
        torch.testing.assert_close(metrics[name], expected[name], rtol=1e-4, atol=1e-6)


def test_ppo_begins_with_a_ratio_of_one():
    env = env_of(worlds=8)
    algorithm = PPO(model_of(env), PPOConfig(epochs=2, minibatch_size=16))
    metrics = algorithm.learn(algorithm.make_collector(env, rollout_length=1).collect())
    assert metrics["ratio_start"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["updates"] > 2


def test_learning_resumes_bit_for_bit():
    env, states = env_of(), []
    for stop in (False, True):
        env.set_seed(3)
        torch.manual_seed(4)
        algorithm = REINFORCE(model_of(env).actor, ReinforceConfig(starts=3))
        collector = algorithm.make_collector(env, rollout_length=1)
        torch.manual_seed(5)
        algorithm.learn(collector.collect())
        if stop:
            saved = algorithm.state_dict(), collector.state_dict(), torch.get_rng_state()
            algorithm = REINFORCE(model_of(env).actor, ReinforceConfig(starts=3))
            collector = algorithm.make_collector(env, rollout_length=1)
            algorithm.load_state_dict(saved[0])
            collector.load_state_dict(saved[1])
            torch.set_rng_state(saved[2])
        algorithm.learn(collector.collect())
        states.append(torch.cat([each.detach().flatten() for each in algorithm.actor.parameters()]))
    assert torch.equal(*states)
