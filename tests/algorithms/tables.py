"""Three tiny decision problems given by tables, their exact values, and off-policy algorithms on them."""

import torch

from edgewise.algorithms.deciders import deciders_of
from edgewise.algorithms.off_policy_config import DQNConfig, IQNConfig, RainbowConfig
from edgewise.algorithms.registry import algorithm_class
from edgewise.config.model import Config
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import AgentsDiscrete, ChooseFromSet, ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.agents.quantile import even_levels
from edgewise.models.config import EncoderConfig, ValueConfig

GAMMA = 0.6
END = 3
"""The state in which everything is over."""
NEXT = torch.tensor([[1, 2, END, 0], [0, 1, 2, END], [END, 0, 1, 2], [END] * 4])
REWARD = torch.tensor([[0.2, -0.5, 1.0, 2.0], [0.0, 0.3, 2.0, -1.0], [0.5, 1.0, 2.0, 0.1], [0.0] * 4])
LEGAL = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()
"""The largest reward of every state is out of reach, so that a maximum over illegal choices shows."""


class TableConfig(Config):
    max_steps: int = 8
    """Steps until a world is cut off; its last state still has a value."""


def draw_states(env, *shape):
    return torch.randint(END, shape, generator=env.generator, device=env.device)


def graph_of(state, nodes):
    """Nodes that know the state of their world, or their own, and which node they are."""
    count = len(state)
    state = state if state.dim() == 2 else state.unsqueeze(-1).expand(count, nodes)
    own = torch.eye(nodes).expand(count, nodes, nodes)
    return {
        "x": torch.cat((torch.nn.functional.one_hot(state, END + 1).float(), own), -1),
        "node_mask": torch.ones(count, nodes, dtype=torch.bool),
        "edge_index": torch.zeros(count, 2, 1, dtype=torch.int64),
        "edge_mask": torch.zeros(count, 1, dtype=torch.bool),
    }


class Nodes(GraphEnv):
    """Choose one of four nodes, some of which are forbidden."""

    def setup(self):
        self.graph = GraphSpec(4, END + 1 + 4, edges=Explicit(num_edges=1))
        self.actions = ChooseNode()

    def spawn(self, count):
        return {"at": draw_states(self, count)}

    def choice(self, state, action):
        return action

    def advance(self, state, action):
        chosen = self.choice(state, action)
        at = NEXT[state["at"], chosen]
        reward = REWARD[state["at"], chosen].masked_fill(~LEGAL[state["at"], chosen], torch.nan)
        return Transition({"at": at}, reward=reward, terminated=at == END)

    def observe(self, state):
        return {"graph": graph_of(state["at"], 4)}

    def mask(self, state):
        return LEGAL[state["at"]]


class Ragged(Nodes):
    """The same choices, offered as a list of different length and order in every state."""

    OFFERED = torch.tensor([[2, 0, 1], [3, 1, 0], [1, 0, 9], [9, 9, 9]])

    def setup(self):
        super().setup()
        self.actions = ChooseFromSet(3)

    def choice(self, state, action):
        return self.OFFERED[state["at"], action].clamp(max=3)

    def observe(self, state):
        return {"graph": graph_of(state["at"], 4), "choices": self.OFFERED[state["at"]]}

    def mask(self, state):
        return self.OFFERED[state["at"]] < 9


class Pair(GraphEnv):
    """Two agents, each with a state of its own; one may be through while the other goes on."""

    def setup(self):
        self.graph = GraphSpec(2, END + 1 + 2, edges=Explicit(num_edges=1))
        self.actions = AgentsDiscrete(2, 4)

    def spawn(self, count):
        return {"at": draw_states(self, count, 2)}

    def advance(self, state, action):
        at = torch.where(state["active"], NEXT[state["at"], action], state["at"])
        reward = REWARD[state["at"], action].masked_fill(~LEGAL[state["at"], action], torch.nan)
        reward = torch.where(state["active"], reward, 0.0)
        return Transition({"at": at}, reward=reward, agents_terminated=at == END)

    def observe(self, state):
        return {"graph": graph_of(state["at"], 2)}

    def mask(self, state):
        return LEGAL[state["at"]]


ENVS = {"nodes": Nodes, "ragged": Ragged, "pair": Pair}
QUICK = {
    "gamma": GAMMA,
    "epsilon": 1.0,
    "learning_starts": 0,
    "minibatch_size": 64,
    "updates_per_transition": 1.0,
    "learning_rate": 3e-3,
    "replay_size": 4096,
    "tau": 0.05,
    "max_grad_norm": 10.0,
}
CONFIGS = {
    "dqn": DQNConfig(**QUICK, mixing="none"),
    "dqn retrace": DQNConfig(**QUICK, mixing="none", n_step=3, retrace=1.0),
    "dqn dueling": DQNConfig(**QUICK, mixing="none", dueling=True, n_step=1, prioritised=True),
    "rainbow": RainbowConfig(**{**QUICK, "n_step": 1}, v_min=-1.0, v_max=3.0, sigma=0.0),
    "iqn": IQNConfig(**QUICK, kappa=0.05, quantiles=16, target_quantiles=16),
}
MODEL = ValueConfig(encoder=EncoderConfig(hidden=32, layers=1, heads=2), hidden=64, cosines=16)


def exact_values():
    """Value iteration: the value of every legal choice in every state, `[S, 4]`; -inf if illegal."""
    values = torch.zeros(END + 1, 4)
    for _ in range(200):
        best = values.masked_fill(~LEGAL, -torch.inf).amax(-1)
        best[END] = 0.0
        values = REWARD + GAMMA * best[NEXT]
    return values.masked_fill(~LEGAL, -torch.inf)


def make_env(name, *, seed=0, num_envs=16):
    return ENVS[name](TableConfig(), num_envs=num_envs, seed=seed)


def make_learner(name, env, *, seed=0, **settings):
    torch.manual_seed(seed)
    config = CONFIGS[name].model_copy(update=settings)
    deciders = deciders_of(env, MODEL, mixing=getattr(config, "mixing", "none"))
    return algorithm_class(name.split()[0])(deciders, config=config, seed=seed)


def train(learner, env, *, updates):
    """Learn from random steps; the learning rate falls, so that values settle."""
    rollout = Rollout(env, learner.policy, rollout_length=4)
    rate = learner.config.learning_rate
    while learner.updates < updates:
        learner.set_scalar("learning_rate", rate * max(0.02, 1 - learner.updates / updates) ** 1.5)
        batch = rollout.collect()
        assert batch["next", "reward"].isfinite().all(), "an illegal action"
        learner.learn(batch)
    return learner


@torch.no_grad()
def learnt_values(learner, observation):
    """The values of all choices, `[*D, K]`, whichever way they are learnt."""
    network = learner.networks["network"]
    if hasattr(learner, "support"):
        return learner.values(network(observation, "none"), observation)
    if learner.config.__class__ is IQNConfig:
        return network(observation, even_levels(learner.like, 64)).mean(-2)
    return network(observation)
