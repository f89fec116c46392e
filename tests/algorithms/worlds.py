"""Toys that an algorithm solves in seconds, one for each kind of action, and how to train on them."""

import torch

from edgewise.algorithms.apg import APG
from edgewise.algorithms.config import APGConfig, EvolutionConfig, PPOConfig, ReinforceConfig
from edgewise.algorithms.evolution import Evolution
from edgewise.algorithms.ppo import PPO
from edgewise.algorithms.reinforce import REINFORCE
from edgewise.config.model import Config
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete, ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig

SMALL = ModelConfig(encoder=EncoderConfig(hidden=16, layers=1, heads=2), head_hidden=(16,))


class ToyConfig(Config):
    max_steps: int = 4
    """Steps until a world is cut off."""


class MarkedNode(GraphEnv):
    """One of up to five nodes is marked; choosing it earns 1. What is forbidden earns NaN."""

    def setup(self):
        self.graph = GraphSpec(num_nodes=5, node_features=1, edges=Explicit(num_edges=4))
        self.actions = ChooseNode()

    def spawn(self, count):
        nodes = torch.randint(1, 6, (count, 1), generator=self.generator, device=self.device)
        draw = torch.rand(count, 5, generator=self.generator, device=self.device)
        exists = torch.arange(5, device=self.device) < nodes
        marked = draw.masked_fill(~exists, -1.0).argmax(-1)
        allowed = (torch.rand(count, 5, generator=self.generator, device=self.device) < 0.6) & exists
        allowed = allowed.scatter(-1, marked.unsqueeze(-1), True)
        return {"node_mask": exists, "marked": marked, "allowed": allowed}

    def advance(self, state, action):
        hit = (action == state["marked"]).float()
        legal = state["allowed"].gather(-1, action.unsqueeze(-1)).squeeze(-1)
        return Transition(self.spawn(len(action)), reward=hit.masked_fill(~legal, torch.nan))

    def observe(self, state):
        x = torch.nn.functional.one_hot(state["marked"], 5).unsqueeze(-1).float()
        edge = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]], device=self.device)
        graph = {
            "x": x,
            "node_mask": state["node_mask"],
            "edge_index": edge.expand(len(x), 2, 4),
            "edge_mask": torch.ones(len(x), 4, dtype=torch.bool, device=self.device),
        }
        return {"graph": graph}

    def mask(self, state):
        return state["allowed"]


class Signals(GraphEnv):
    """Each of three agents sees which of two things to do; doing it earns 1. Some agents were never there."""

    layout = AgentsDiscrete(3, 2)

    def setup(self):
        self.graph = GraphSpec(num_nodes=4, node_features=1, edges=Explicit(num_edges=3))
        self.actions = self.layout

    def spawn(self, count):
        present = torch.rand(count, 3, generator=self.generator, device=self.device) < 0.7
        present[:, 0] = True
        return {"active": present, "signal": self._signals(count)}

    def _signals(self, count):
        return torch.randint(0, 2, (count, 3), generator=self.generator, device=self.device)

    def advance(self, state, action):
        leaves = torch.rand(action.shape[:2], generator=self.generator, device=self.device) < 0.1
        signals = self._signals(len(action))
        return Transition({"signal": signals}, reward=self._earned(state, action), agents_terminated=leaves)

    def _earned(self, state, action):
        return (action == state["signal"]).float()

    def observe(self, state):
        count = len(state["signal"])
        signal = torch.nn.functional.pad(state["signal"] * 2.0 - 1, (0, 1))
        edge = torch.tensor([[3, 3, 3], [0, 1, 2]], device=self.device)
        graph = {
            "x": signal.unsqueeze(-1),
            "node_mask": torch.ones(count, 4, dtype=torch.bool, device=self.device),
            "edge_index": edge.expand(count, 2, 3),
            "edge_mask": torch.ones(count, 3, dtype=torch.bool, device=self.device),
        }
        return {"graph": graph}


class Dials(Signals):
    """As signals, but what earns is a number near the signal, -1 or 1, in place of a choice."""

    layout = AgentsContinuous(3, 1, low=-2.0, high=2.0)

    def _earned(self, state, action):
        return 1 - (action.squeeze(-1) - (state["signal"] * 2.0 - 1)).abs()


TOYS = {"marked": MarkedNode, "signals": Signals, "dials": Dials}
SETTINGS = PPOConfig(minibatch_size=128, learning_rate=5e-3, gamma=0.5, entropy_coefficient=0.0)


def toy(name, *, seed=0, num_envs=32, device="cpu"):
    return TOYS[name](ToyConfig(), num_envs=num_envs, seed=seed, device=device)


def learner(env, *, seed=0, config=SETTINGS, model=SMALL, device="cpu"):
    torch.manual_seed(seed)
    return PPO(make_actor_critic(env.graph, env.actions, model), config, seed=seed, device=device)


def episodic(env, *, seed=0):
    """REINFORCE, which collects whole episodes by itself."""
    torch.manual_seed(seed)
    config = ReinforceConfig(baseline="mean", learning_rate=0.02, max_grad_norm=100.0)
    return REINFORCE(make_actor_critic(env.graph, env.actions, SMALL).actor, config)


def analytic(env, *, seed=0):
    """Analytic policy gradients, for toys whose rewards have gradients."""
    torch.manual_seed(seed)
    model = SMALL.model_copy(update={"initial_std": 0.1})
    config = APGConfig(horizon=2, learning_rate=5e-3, minibatch_size=32, updates=12)
    return APG(make_actor_critic(env.graph, env.actions, model).actor, config, env=env, seed=seed)


def evolving(env, *, seed=0):
    """Evolution strategies, with a candidate for every world."""
    torch.manual_seed(seed)
    config = EvolutionConfig(pairs=env.num_envs // 2, sigma=0.1, learning_rate=0.05)
    return Evolution(make_actor_critic(env.graph, env.actions, SMALL).actor, config, seed=seed)


def batches(env, algorithm, count, *, steps=16):
    """`count` rollouts by the algorithm as it stands at each."""
    own = algorithm.make_collector(env, rollout_length=steps)
    rollout = own or Rollout(env, algorithm.policy, rollout_length=steps, keep_state=algorithm.needs_state)
    return (rollout.collect() for _ in range(count))


def mean_reward(batch):
    """Mean over decisions that count."""
    reward = batch["next", "reward"].squeeze(-1)
    active = batch.get(("agents", "active"), None)
    return reward.mean().item() if active is None else reward[active].mean().item()
