"""A construction problem small enough to be solved by hand: pick nodes in an order that pays."""

from itertools import permutations

import torch

from edgewise.algorithms.config import ReinforceConfig
from edgewise.algorithms.reinforce import REINFORCE
from edgewise.config.model import Config
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig

NODES = 4
EDGES = list(permutations(range(NODES), 2))
SMALL = ModelConfig(encoder=EncoderConfig(hidden=16, layers=1, heads=2), head_hidden=(16,), policy_gain=1.0)


class PickingConfig(Config):
    picks: int | None = None
    """Nodes to pick; a random number from 1 to 3 in each world if not given."""


class Picking(GraphEnv):
    """Pick some of four nodes, each at most once; the t-th pick pays t + 1 times the worth of its node."""

    def setup(self):
        self.graph = GraphSpec(num_nodes=NODES, node_features=3, edges=Explicit(num_edges=len(EDGES)))
        self.actions = ChooseNode()

    def spawn(self, count):
        left = torch.randint(1, 4, (count,), generator=self.generator, device=self.device)
        if self.config.picks is not None:
            left = torch.full_like(left, self.config.picks)
        worth = torch.randn(count, NODES, generator=self.generator, device=self.device)
        return {"worth": worth, "left": left, "picked": torch.zeros_like(worth, dtype=torch.bool)}

    def advance(self, state, action):
        worth = state["worth"].gather(-1, action.unsqueeze(-1)).squeeze(-1)
        picked = state["picked"].scatter(-1, action.unsqueeze(-1), True)
        reward, left = worth * (state["step"] + 1), state["left"] - 1
        return Transition({"left": left, "picked": picked}, reward=reward, terminated=left == 0)

    def observe(self, state):
        left = state["left"].unsqueeze(-1).expand_as(state["worth"])
        x = torch.stack((state["worth"], state["picked"].float(), left.float()), -1)
        count = len(x)
        edges = torch.tensor(EDGES, device=self.device).T.expand(count, 2, len(EDGES))
        graph = {
            "x": x,
            "node_mask": torch.ones_like(state["picked"]),
            "edge_index": edges,
            "edge_mask": torch.ones(count, len(EDGES), dtype=torch.bool, device=self.device),
        }
        return {"graph": graph, "metrics": {"picks": state["picked"].sum(-1).float()}}

    def mask(self, state):
        return ~state["picked"]


def picking(*, num_envs=12, seed=0, picks=None):
    return Picking(PickingConfig(picks=picks), num_envs=num_envs, seed=seed)


def reinforce(env, *, seed=0, model=SMALL, dtype=torch.float32, **settings):
    torch.manual_seed(seed)
    actor = make_actor_critic(env.graph, env.actions, model).actor.to(dtype)
    return REINFORCE(actor, ReinforceConfig(**settings))


def orders(picks):
    """All orders in which so many nodes can be picked."""
    return list(permutations(range(NODES), picks))


def worth_of(order, worth):
    """The return of an order, from the worth of each node."""
    return sum((place + 1) * float(worth[node]) for place, node in enumerate(order))
