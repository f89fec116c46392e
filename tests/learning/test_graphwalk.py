"""PPO walks random graphs as well as breadth-first search does, on sizes it has seen and on larger ones."""

import pytest
import torch

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate
from edgewise.models.actor_critic import make_actor_critic
from edgewise.systems.graphwalk.baselines import shortest_path

pytestmark = pytest.mark.learning

EPISODES, INSTANCES, BATCHES = 512, 1_000_003, 10


def share_of_optimum(policy, **settings):
    """The optimal return over the policy's, both negative: 1 is optimal, on instances never trained on."""
    env = make_env("graphwalk", num_envs=EPISODES, seed=INSTANCES, **settings)
    best, found = (
        evaluate(env, player, episodes=EPISODES, seed=INSTANCES).returns.mean()
        for player in (shortest_path(env), policy)
    )
    return best / found


@pytest.mark.parametrize("seed", range(3))
def test_ppo_reaches_the_optimum(seed):
    """20,480 frames at a falling learning rate; three seeds take well under two minutes of one core."""
    torch.manual_seed(seed)
    env = make_env("graphwalk", num_envs=64, seed=seed)
    algorithm = PPO(make_actor_critic(env.graph, env.actions), PPOConfig(learning_rate=1e-3), seed=seed)
    rollout = Rollout(env, algorithm.policy, rollout_length=32)
    before = share_of_optimum(algorithm.policy)
    for number in range(BATCHES):
        algorithm.set_scalar("learning_rate", 1e-3 * (1 - 0.9 * number / BATCHES))
        metrics = algorithm.learn(rollout.collect())
        assert metrics["ratio_start"] == 1.0
    reached, larger = share_of_optimum(algorithm.policy), share_of_optimum(algorithm.policy, num_nodes=24)
    assert before < 0.5
    assert reached >= 0.95
    assert larger > 0.5
