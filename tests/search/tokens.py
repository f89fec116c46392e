"""A small game in which the same player may move twice, and its exact solution in plain Python."""

from functools import cache

import torch

from edgewise.config.model import Config
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec

MOST = 9


class TokensConfig(Config):
    bonus: float = 0.0
    """Reward of taking three tokens."""


class TokensEnv(GraphEnv[TokensConfig]):
    """Players take one to three tokens; who leaves five moves again, and the last token wins."""

    def setup(self):
        self.graph = GraphSpec(
            num_nodes=MOST, node_features=2 * MOST + 1, edges=Explicit(num_edges=2 * MOST - 2)
        )
        self.actions = ChooseNode()

    def spawn(self, count):
        left = torch.randint(4, MOST + 1, (count,), generator=self.generator, device=self.device)
        return {"left": left, "player": torch.randint(0, 2, (count,), generator=self.generator)}

    def advance(self, state, action):
        taken, player = action + 1, state["player"]
        left = state["left"] - taken
        won = left == 0
        again = left == 5
        after = {"left": left, "player": torch.where(again, player, 1 - player)}
        return Transition(after, reward=won.float() + self.config.bonus * (taken == 3), terminated=won)

    def observe(self, state):
        token = torch.arange(MOST, device=self.device)
        left = torch.nn.functional.one_hot(state["left"], MOST + 1).unsqueeze(1).expand(-1, MOST, -1)
        own = torch.eye(MOST, device=self.device).expand(len(left), -1, -1)
        edge = torch.stack((token[:-1], token[1:]))
        edge = torch.cat((edge, edge.flip(0)), 1)
        graph = {
            "x": torch.cat((left, own), -1),
            "node_mask": torch.ones(len(left), MOST, dtype=torch.bool),
            "edge_index": edge.expand(len(left), 2, -1),
            "edge_mask": torch.ones(len(left), edge.shape[1], dtype=torch.bool),
        }
        return {"graph": graph, "player": state["player"]}

    def mask(self, state):
        token = torch.arange(MOST, device=self.device)
        return (token < 3) & (token < state["left"].unsqueeze(-1))


@cache
def worth(left, bonus=0.0):
    """The best result of the player to move."""
    return max(values(left, bonus).values())


@cache
def values(left, bonus=0.0):
    """The result of every action for the player to move."""
    found = {}
    for action in range(min(3, left)):
        taken = action + 1
        reward = bonus * (taken == 3) + (taken == left)
        rest = 0.0 if taken == left else worth(left - taken, bonus)
        found[action] = reward + (rest if left - taken == 5 else -rest)
    return found
