"""All six off-policy agents must learn to steer a boat to its goal, and never do what cannot be done."""

import pytest
import torch
from tests.algorithms.test_agents import actions_of, illegal

from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.registry import algorithm_class, algorithm_config
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate
from edgewise.models.agents.ego import EgoSpec
from edgewise.systems.marine.models.config import MarineEgoConfig

pytestmark = pytest.mark.learning

SETTINGS = {
    "learning_rate": 1e-3,
    "minibatch_size": 128,
    "updates_per_transition": 1 / 16,
    "learning_starts": 1000,
    "n_step": 3,
    "tau": 0.02,
}
STEADY = {"actor_share": 0.2, "target_noise": 0.2}
"""For actors without chance: at the fast pace above they would climb their critics' errors."""
FRAMES = {"dqn": 10_240, "iqn": 30_720, "rainbow": 10_240, "ddpg": 16_384, "ac-iqn": 24_576, "sac": 16_384}
"""Steps of single worlds that each may take: less than a CPU-minute."""
ENOUGH = 0.9
"""Least share of 100 new worlds in which the boat reaches its goal, at least 15 m away, within 50 seconds."""
WORLDS, STEPS = 64, 16
MILLION = 1_000_000


def boats(name, *, num_envs, seed):
    """One boat in each world, without obstacles."""
    actions = "discrete" if name in ("dqn", "iqn", "rainbow") else "continuous"
    return make_env(
        "marine",
        num_envs=num_envs,
        seed=seed,
        num_robots=1,
        num_obstacles=0,
        min_start_goal_dis=15.0,
        max_steps=100,
        actions=actions,
        graph_edges=False,
    )


def made(name, env):
    """An agent of the published size."""
    torch.manual_seed(0)
    steady = STEADY if name in ("ddpg", "ac-iqn") else {}
    config = algorithm_config(name)(**SETTINGS, **steady)
    return algorithm_class(name)(
        Deciders(env.actions, MarineEgoConfig(), ego=EgoSpec(), per_agent=True), config=config
    )


@pytest.mark.parametrize("name", FRAMES)
def test_it_learns_to_reach_a_goal(name):
    env, test = boats(name, num_envs=WORLDS, seed=0), boats(name, num_envs=100, seed=1)
    agent = made(name, env)
    rollout = Rollout(env, agent.policy, rollout_length=STEPS)
    before = evaluate(test, agent.policy, episodes=100, seed=1).metrics["success"].mean()
    while agent.frames < FRAMES[name]:
        if agent.config.epsilon:
            agent.set_scalar("epsilon", max(0.05, 0.6 - 0.55 * agent.frames / 8000))
        agent.learn(rollout.collect())
    after = evaluate(test, agent.policy, episodes=100, seed=1).metrics["success"].mean()
    assert before < 0.5
    assert after >= ENOUGH


def test_not_one_of_a_million_actions_is_illegal():
    for name in FRAMES:
        env = boats(name, num_envs=4, seed=0)
        agent, left = made(name, env), MILLION // len(FRAMES) + 1
        while left > 0:
            action, active = actions_of(agent, worlds=2000, explores=left % 4000 < 2000, slots=5)
            assert illegal(action, env.actions) == 0
            assert (action[~active] == 0).all()
            left -= active.numel()
