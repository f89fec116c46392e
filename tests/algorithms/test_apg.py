"""Analytic policy gradients: the gradient against finite differences, and what a window is."""

import pytest
import torch
from tests.algorithms.worlds import SMALL, Dials, ToyConfig, analytic, batches, toy
from tests.systems.swarm.worlds import swarm

from edgewise.algorithms.apg import APG
from edgewise.algorithms.config import APGConfig
from edgewise.algorithms.setup import Setup
from edgewise.config.errors import ConfigError
from edgewise.envs.base import Transition
from edgewise.models.actor_critic import make_actor_critic

SMOOTH = {"continuous": True, "goal_width": 0.1, "collision_margin": 0.05, "reward": "individual"}


def learner(env, model=SMALL, **config):
    torch.manual_seed(0)
    return APG(make_actor_critic(env.graph, env.actions, model).actor, APGConfig(**config), env=env)


def crowd(**settings):
    return swarm(
        **{"num_envs": 4, "num_agents": (2, 4), "num_obstacles": 2, "world_size": 0.5} | SMOOTH | settings
    )


def test_the_gradient_is_that_of_finite_differences():
    """Through four steps of agents that are near each other, in double precision; contacts pass none."""
    env = crowd(world_size=3.0, collision_margin=1.0)
    apg = learner(env, horizon=4)
    apg.actor.double()
    start = env.reset().apply(lambda each: each.double() if each.is_floating_point() else each)
    apg.window_reward(start.clone()).backward()
    weight = apg.actor.head.parameterise[-1].weight
    largest = weight.grad.abs().amax(0).argmax().item()
    for place in [(0, largest), (1, largest)]:
        value, step = weight.data[place].item(), 1e-6
        found = []
        for shifted in (value + step, value - step):
            weight.data[place] = shifted
            found.append(apg.window_reward(start.clone()).item())
        weight.data[place] = value
        slope = (found[0] - found[1]) / (2 * step)
        assert abs(slope) > 1e-5
        assert weight.grad[place].item() == pytest.approx(slope, rel=1e-5)


def test_the_window_reward_is_that_of_the_policy_in_the_environment():
    """The mean over agents that exist and over steps, as the mode of the policy earns it."""
    env = crowd()
    apg, root = learner(env, horizon=3), env.reset()
    start, agents = root.clone(), root["agents", "active"]
    with torch.no_grad():
        for _ in range(3):
            root = env.step(root.set("action", apg.policy.get_dist(root).mode))["next"].exclude("reward")
    earned = (root["metrics", "reward"] * agents.sum(-1)).sum() / agents.sum()
    assert apg.window_reward(start).item() == pytest.approx(earned.item() / 3, rel=1e-5)


def test_without_observations_the_gradient_is_that_of_fixed_later_actions():
    """Against the same actions as leaves of an open-loop simulation, whose gradients the policy takes."""
    env = crowd(world_size=3.0, collision_margin=1.0)
    reacting = SMALL.model_copy(update={"policy_gain": 1.0})
    apg, start = learner(env, reacting, horizon=4, through_observations=False), env.reset()
    apg.window_reward(start.clone()).backward()
    found = [parameter.grad.clone() for parameter in apg.actor.parameters()]
    root, seen, actions, rewards = start.clone(), [], [], []
    for _ in range(4):
        seen.append(root.detach())
        actions.append(apg.actor.get_dist(seen[-1]).mode.detach().requires_grad_())
        root = env.simulate(root.set("action", actions[-1]))
        rewards.append(root["reward"])
    active = start["agents", "active"].unsqueeze(-1)
    (torch.stack(rewards).mean(0) * active).sum().div(active.sum()).backward()
    apg.actor.zero_grad()
    for each, action in zip(seen, actions, strict=True):
        apg.actor.get_dist(each).mode.backward(action.grad)
    for one, parameter in zip(found, apg.actor.parameters(), strict=True):
        torch.testing.assert_close(one, parameter.grad, rtol=1e-4, atol=1e-6)
    apg = learner(env, reacting, horizon=4)
    apg.window_reward(start.clone()).backward()
    assert any(
        not torch.allclose(one, parameter.grad, rtol=1e-2, atol=1e-5)
        for one, parameter in zip(found, apg.actor.parameters(), strict=True)
    )


def test_only_the_standard_deviation_of_the_policy_is_not_trained():
    env = crowd()
    apg = learner(env)
    apg.window_reward(env.reset()).backward()
    for name, parameter in apg.policy.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    last = apg.policy.head.parameterise[-1].weight.grad
    assert last[:2].any()
    assert not last[2:].any()


class Ending(Dials):
    """Worlds terminate after their second step, and earn 1 for any action with a gradient of 0."""

    def advance(self, state, action):
        earned = 1.0 + 0.0 * action.squeeze(-1)
        return Transition({}, reward=earned, terminated=state["step"] >= 1)


def test_a_terminated_world_earns_nothing_and_a_time_limit_ends_no_window():
    env = Ending(ToyConfig(max_steps=1), num_envs=8, seed=0)
    assert learner(env, horizon=4).window_reward(env.reset()).item() == pytest.approx(2 / 4)


def test_learning_leaves_the_random_numbers_of_the_environment_alone():
    env = toy("dials", num_envs=8)
    apg = analytic(env)
    batch = next(batches(env, apg, 1))
    before = env.generator.get_state()
    apg.learn(batch)
    assert torch.equal(env.generator.get_state(), before)


class Counting(Dials):
    """What earns is counted, which has no gradient."""

    def _earned(self, state, action):
        return (super()._earned(state, action) > 0).float()


def test_rewards_without_a_gradient_are_refused():
    env = Counting(ToyConfig(), num_envs=8, seed=0)
    apg = analytic(env)
    with pytest.raises(ConfigError, match="differentiable by the actions; those of counting are not"):
        apg.learn(next(batches(env, apg, 1)))


def setup(env, model=SMALL):
    return Setup(
        env=env,
        config=APGConfig(),
        model=model,
        make_model=lambda: make_actor_critic(env.graph, env.actions, model),
        make_baseline=lambda name, *, field: None,
        seed=0,
    )


def test_discrete_actions_are_refused():
    with pytest.raises(ConfigError, match="needs continuous actions, but they are AgentsDiscrete"):
        APG.from_setup(setup(crowd(continuous=False)))


def test_a_recurrent_model_is_refused():
    recurrent = SMALL.model_copy(update={"recurrent": True})
    with pytest.raises(ConfigError, match=r"model\.recurrent"):
        APG.from_setup(setup(crowd(), recurrent))
