"""Two players, one policy: self-play finds perfect play of a small game, if and only if signs are right."""

import pytest
import torch

from edgewise.algorithms.config import PPOConfig, SelfPlayConfig
from edgewise.algorithms.ppo import PPO
from edgewise.config.model import Config
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig

pytestmark = pytest.mark.learning

MOST, AGAIN = 12, (4, 7)
"""Largest heap, and the heaps that let whoever leaves them move once more."""


class TakeAwayConfig(Config):
    max_steps: int = 50
    """Never reached."""


class TakeAway(GraphEnv):
    """A heap; take one (node 0) or two (node 1); who takes the last wins. Some heaps give another turn."""

    def setup(self):
        self.graph = GraphSpec(num_nodes=2, node_features=MOST + 2, edges=Explicit(num_edges=2))
        self.actions = ChooseNode()

    def spawn(self, count):
        drawn = torch.randint(1, MOST + 1, (count,), generator=self.generator)
        return {"heap": drawn, "player": torch.randint(0, 2, (count,), generator=self.generator)}

    def advance(self, state, action):
        heap = state["heap"] - 1 - action
        again = torch.isin(heap, torch.tensor(AGAIN))
        player = torch.where(again, state["player"], 1 - state["player"])
        return Transition({"heap": heap, "player": player}, reward=(heap == 0).float(), terminated=heap == 0)

    def observe(self, state):
        count = len(state["heap"])
        seen = torch.nn.functional.one_hot(state["heap"], MOST + 1).float().unsqueeze(1).expand(-1, 2, -1)
        which = torch.tensor([[0.0], [1.0]]).expand(count, 2, 1)
        graph = {
            "x": torch.cat([seen, which], -1),
            "node_mask": torch.ones(count, 2, dtype=torch.bool),
            "edge_index": torch.tensor([[0, 1], [1, 0]]).expand(count, 2, 2),
            "edge_mask": torch.ones(count, 2, dtype=torch.bool),
        }
        return {"graph": graph, "player": state["player"]}

    def mask(self, state):
        return torch.stack([state["heap"] >= 1, state["heap"] >= 2], -1)


def solved():
    """For each heap, the moves that win against perfect play; none where all lose."""
    wins, moves = {0: False}, {}
    for heap in range(1, MOST + 1):
        good = [
            take - 1
            for take in (1, 2)
            if take <= heap and (wins[heap - take] if heap - take in AGAIN else not wins[heap - take])
        ]
        wins[heap], moves[heap] = bool(good), good
    return moves


def mistakes(algorithm, env):
    """Heaps on which the policy's choice throws a win away."""
    state = env._tensordict({"heap": torch.arange(1, MOST + 1), "player": torch.zeros(MOST).long()}, MOST)
    seen = env._tensordict({**env.observe(state), "action_mask": env.mask(state)}, MOST)
    with torch.no_grad():
        chosen = algorithm.policy.get_dist(seen).mode.tolist()
    return [heap for heap, good in solved().items() if good and chosen[heap - 1] not in good]


def trained(seed, *, two_player):
    torch.manual_seed(seed)
    env = TakeAway(TakeAwayConfig(), num_envs=64, seed=seed)
    model = ModelConfig(encoder=EncoderConfig(kind="mlp", hidden=64, layers=1), head_hidden=(32,))
    settings = SelfPlayConfig if two_player else PPOConfig
    config = settings(gamma=1.0, learning_rate=3e-3, minibatch_size=512)
    algorithm = PPO(make_actor_critic(env.graph, env.actions, model), config, seed=seed)
    rollout = Rollout(env, algorithm.policy, rollout_length=16)
    for _ in range(40):
        algorithm.learn(rollout.collect())
    return mistakes(algorithm, env)


@pytest.mark.parametrize("seed", range(3))
def test_self_play_finds_perfect_play(seed):
    assert trained(seed, two_player=True) == []


def test_one_view_for_both_players_does_not():
    """The planted fault: a value of the next mover taken for one's own."""
    assert trained(0, two_player=False) != []


def test_the_game_is_worth_playing():
    good = solved()
    assert sum(len(moves) == 1 for moves in good.values()) > 3
    assert sum(not moves for moves in good.values()) >= 2
