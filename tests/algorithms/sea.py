"""A toy sea: each robot sees where to go and some objects, and off-policy agents solve it in seconds."""

import torch

from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy_config import (
    ACIQNConfig,
    DDPGConfig,
    DQNConfig,
    IQNConfig,
    RainbowConfig,
    SACConfig,
)
from edgewise.algorithms.registry import algorithm_class
from edgewise.config.model import Config
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.config import EgoConfig, EncoderConfig

SLOTS = 2


class SeaConfig(Config):
    max_steps: int = 4
    """Steps until a world is cut off."""


class Buoys(GraphEnv):
    """Each of three robots sees in which of four quadrants its buoy lies; naming it earns 1.

    Robots leave now and then, and some were never there. What they should not do earns NaN: to act outside of
    the four choices, or at all when inactive, other than by 0.
    """

    layout = AgentsDiscrete(3, 4)

    def setup(self):
        self.graph = GraphSpec(num_nodes=3, node_features=1, edges=Explicit(num_edges=1))
        self.actions = self.layout

    def spawn(self, count):
        present = torch.rand(count, 3, generator=self.generator, device=self.device) < 0.7
        present[:, 0] = True
        return {"active": present, "buoy": self._buoys(count)}

    def _buoys(self, count):
        return torch.randint(0, 2, (count, 3, 2), generator=self.generator, device=self.device) * 2.0 - 1

    def advance(self, state, action):
        leaves = torch.rand(action.shape[:2], generator=self.generator, device=self.device) < 0.1
        reward = self._earned(state, action)
        reward = reward.masked_fill(self._illegal(state, action), torch.nan)
        return Transition({"buoy": self._buoys(len(action))}, reward=reward, agents_terminated=leaves)

    def _earned(self, state, action):
        quadrant = (state["buoy"] > 0).float() @ torch.tensor([1.0, 2.0], device=self.device)
        return (action == quadrant).float()

    def _illegal(self, state, action):
        return (action < 0) | (action > 3) | (~state["active"] & (action != 0))

    def observe(self, state):
        count = len(state["buoy"])
        own = torch.nn.functional.pad(state["buoy"], (0, 5))
        objects = torch.rand(count, 3, SLOTS, 5, generator=self.generator, device=self.device)
        seen = torch.rand(count, 3, SLOTS, generator=self.generator, device=self.device) < 0.5
        graph = {
            "x": torch.zeros(count, 3, 1, device=self.device),
            "node_mask": torch.ones(count, 3, dtype=torch.bool, device=self.device),
            "edge_index": torch.zeros(count, 2, 1, dtype=torch.int64, device=self.device),
            "edge_mask": torch.zeros(count, 1, dtype=torch.bool, device=self.device),
        }
        return {"graph": graph, "agents": {"ego": {"self": own, "objects": objects, "mask": seen}}}


class Rudders(Buoys):
    """As buoys, but two numbers should be the buoy's place, in bounds other than the usual."""

    layout = AgentsContinuous(3, 2, low=-2.0, high=2.0)

    def _earned(self, state, action):
        return 1 - (action - state["buoy"]).abs().mean(-1)

    def _illegal(self, state, action):
        return ((action < -2) | (action > 2) | (~state["active"].unsqueeze(-1) & (action != 0))).any(-1)


SEAS = {"buoys": Buoys, "rudders": Rudders}
QUICK = {
    "gamma": 0.5,
    "learning_rate": 3e-3,
    "max_grad_norm": 10.0,
    "minibatch_size": 96,
    "updates_per_transition": 1 / 10,
    "learning_starts": 0,
    "tau": 0.02,
    "replay_size": 4096,
}
SMALL = EgoConfig(
    self_width=16,
    object_width=8,
    hidden=32,
    cosines=16,
    graph=EncoderConfig(hidden=16, layers=1, heads=2),
)
AGENTS = {
    "dqn": DQNConfig(**QUICK, epsilon=0.15),
    "rainbow": RainbowConfig(**QUICK, v_min=-0.5, v_max=2.5, sigma=0.1),
    "iqn": IQNConfig(**QUICK, epsilon=0.15),
    "ddpg": DDPGConfig(**QUICK, epsilon=0.15, action_noise=0.1),
    "ac-iqn": ACIQNConfig(**QUICK, epsilon=0.15, action_noise=0.1),
    "sac": SACConfig(**QUICK, initial_temperature=0.02),
}
"""Name of an agent → settings under which it solves its sea in seconds."""

SEA_OF = {name: "buoys" if name in ("dqn", "rainbow", "iqn") else "rudders" for name in AGENTS}


def sea(name, *, seed=0, num_envs=32, device="cpu"):
    return SEAS[name](SeaConfig(), num_envs=num_envs, seed=seed, device=device)


def agent(name, *, seed=0, device="cpu", model=SMALL, **changes):
    """An agent for its sea, with some settings changed."""
    torch.manual_seed(seed)
    config = type(AGENTS[name]).model_validate(AGENTS[name].model_dump() | changes)
    layout = SEAS[SEA_OF[name]].layout
    kind = algorithm_class(name)
    deciders = Deciders(layout, model, ego=EgoSpec(slots=SLOTS), per_agent=True)
    return kind(deciders, config=config, seed=seed, device=device)
