"""The two-step game of QMIX (https://arxiv.org/abs/1803.11485): a mixer solves it, separate learners do not.

In the first step the first agent chooses the second game: one pays 7 for anything, the other 8 if both take
their second action, 1 if one does, and 0 if none does.
"""

import pytest
import torch
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.algorithms.deciders import deciders_of
from edgewise.algorithms.dqn import DQN
from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.config.model import Config
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import AgentsDiscrete
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig, ValueConfig

START, SAFE, RISKY, OVER = range(4)
PAYS = torch.tensor([[[0.0, 0.0], [0.0, 0.0]], [[7.0, 7.0], [7.0, 7.0]], [[0.0, 1.0], [1.0, 8.0]]])
MODEL = ValueConfig(encoder=EncoderConfig(hidden=32, layers=1, heads=2), hidden=64)
UPDATES = 1500


class GameConfig(Config):
    """No settings."""


class TwoStepGame(GraphEnv):
    """Both agents get half of what the team earns."""

    def setup(self):
        self.graph = GraphSpec(2, 6, edges=Explicit(num_edges=1))
        self.actions = AgentsDiscrete(2, 2)

    def spawn(self, count):
        return {"stage": torch.zeros(count, dtype=torch.int64)}

    def advance(self, state, action):
        stage = state["stage"]
        paid = PAYS[stage.clamp(max=RISKY), action[:, 0], action[:, 1]]
        chosen = torch.where(action[:, 0] == 0, SAFE, RISKY)
        following = torch.where(stage == START, chosen, OVER)
        return Transition(
            {"stage": following}, reward=(paid / 2).unsqueeze(-1).expand(-1, 2), terminated=following == OVER
        )

    def observe(self, state):
        count = len(state["stage"])
        stage = torch.nn.functional.one_hot(state["stage"], 4).float().unsqueeze(1).expand(count, 2, 4)
        return {
            "graph": {
                "x": torch.cat((stage, torch.eye(2).expand(count, 2, 2)), -1),
                "node_mask": torch.ones(count, 2, dtype=torch.bool),
                "edge_index": torch.zeros(count, 2, 1, dtype=torch.int64),
                "edge_mask": torch.zeros(count, 1, dtype=torch.bool),
            }
        }


def earned(mixing, *, seed, updates=UPDATES):
    """Return what the greedy team earns after learning from random play."""
    env = TwoStepGame(GameConfig(), num_envs=16, seed=seed)
    torch.manual_seed(seed)
    config = DQNConfig(
        gamma=0.99,
        epsilon=1.0,
        learning_starts=0,
        minibatch_size=64,
        updates_per_transition=0.5,
        learning_rate=2e-3,
        tau=0.05,
        replay_size=4096,
        mixing=mixing,
    )
    learner = DQN(deciders_of(env, MODEL, mixing=mixing), config=config, seed=seed)
    rollout = Rollout(env, learner.policy, rollout_length=8)
    while learner.updates < updates:
        learner.learn(rollout.collect())
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        played = env.rollout(2, learner.policy)
    return played["next", "reward"].sum((-1, -2, -3))[0].item()


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mixing, best", [("none", 7.0), ("sum", 7.0), ("monotone", 8.0)])
def test_what_the_team_earns(mixing, best, seed):
    assert earned(mixing, seed=seed) == pytest.approx(best)
