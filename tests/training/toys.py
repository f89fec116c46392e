"""A tiny world, a tiny algorithm and a tiny run: everything the trainer needs, nothing that takes time."""

from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import nn

from edgewise.algorithms.algorithm import Algorithm
from edgewise.config.model import Config
from edgewise.config.run import RunConfig
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.evaluation.evaluate import evaluate
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.spec import GraphSpec
from edgewise.runs.folder import RunFolder
from edgewise.training.parts import Parts
from edgewise.training.trainer import Trainer


class ToyConfig(Config):
    """A world of `nodes` numbers, one of which is the largest."""

    nodes: int = 4
    scale: float = 1.0
    max_steps: int = 5


class ToyEnv(GraphEnv[ToyConfig]):
    """Choose the node with the largest number; numbers are drawn anew with each world."""

    name = "toy"
    stage_settings = ("scale",)

    def setup(self):
        self.graph = GraphSpec(num_nodes=self.config.nodes, node_features=1)
        self.actions = ChooseNode()

    def spawn(self, count):
        x = torch.rand(count, self.config.nodes, 1, generator=self.generator) * self.config.scale
        return {"x": x}

    def advance(self, state, action):
        reward = state["x"].squeeze(-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
        return Transition(state={}, reward=reward)

    def observe(self, state):
        graph = self.graph.zeros(*state.batch_size)
        graph["x"] = state["x"]
        graph["node_mask"] = torch.ones_like(graph["node_mask"])
        return {"graph": graph}


class ToyPolicy(nn.Module):
    """Scores each node by itself."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(1, 1)

    def forward(self, tensordict):
        from torchrl.envs.utils import ExplorationType, exploration_type

        logits = self.score(tensordict["graph", "x"]).squeeze(-1)
        if exploration_type() is ExplorationType.DETERMINISTIC:
            return tensordict.set("action", logits.argmax(-1))
        chances = torch.distributions.Categorical(logits=logits)
        return tensordict.set("action", chances.sample())

    def diagnostics(self, graph):
        return {"rms": graph["x"].square().mean().sqrt()}


class ToyAlgorithm(Algorithm):
    """REINFORCE without a baseline, with every kind of state that an algorithm may have."""

    policy = None

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.policy = ToyPolicy()
        self.config = ToyAlgorithmConfig()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.generator = torch.Generator().manual_seed(seed)
        self.batches = 0

    @classmethod
    def from_setup(cls, setup):
        return cls(setup.seed)

    def apply_config(self):
        self.optimizer.param_groups[0]["lr"] = self.config.learning_rate

    def learn(self, batch):
        logits = self.policy.score(batch["graph", "x"]).squeeze(-1)
        chosen = logits.log_softmax(-1).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        noise = 1 + 0.01 * torch.rand(chosen.shape, generator=self.generator)
        loss = -(chosen * noise * batch["next", "reward"].squeeze(-1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        self.optimizer.step()
        self.batches += 1
        return {"loss": loss.detach(), "gradient_norm": norm}

    def state_dict(self):
        return {
            "policy": {name: value.clone() for name, value in self.policy.state_dict().items()},
            "optimizer": self.optimizer.state_dict()["state"],
            "generator": self.generator.get_state(),
            "scalars": self.scalars(),
            "batches": self.batches,
        }

    def load_state_dict(self, state):
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state["optimizer"]})
        self.generator.set_state(state["generator"])
        self.load_scalars(state["scalars"])
        self.batches = state["batches"]


class ToyAlgorithmConfig(Config):
    learning_rate: float = 1e-2


class ToyModelConfig(Config):
    pass


def toy_config(*, total_frames=96, seed=0, nodes=4, **settings: Any) -> RunConfig[Any, Any, Any]:
    """A run of six batches of sixteen frames; `settings` replaces whole sections."""
    sections = {
        "algorithm": {},
        "training": {"total_frames": total_frames, "num_envs": 4, "rollout_length": 4},
        "evaluation": {"every": 40, "episodes": 3},
        "checkpoint": {"every": 40, "keep_last": 2},
        "logging": {"tensorboard": False},
    }
    for name, changes in settings.items():
        sections[name] = {**sections[name], **changes}
    return RunConfig[ToyConfig, ToyModelConfig, ToyAlgorithmConfig].from_plain(
        {
            "recipe": "toy",
            "name": "toy",
            "seed": seed,
            "env": {"nodes": nodes},
            "model": {},
            **sections,
        }
    )


def toy_parts(config: RunConfig[Any, Any, Any]) -> Parts:
    env = ToyEnv(config.env, num_envs=config.training.num_envs, seed=config.seed)
    algorithm = ToyAlgorithm(config.seed)
    instances = ToyEnv(config.env, num_envs=config.evaluation.episodes, seed=0)

    def play(policy, *, record=0):
        episodes, seed = config.evaluation.episodes, config.evaluation.seed
        return evaluate(instances, policy, episodes=episodes, seed=seed, record=record)

    def first(tensordict):
        return tensordict.set("action", torch.zeros(tensordict.batch_size, dtype=torch.int64))

    return Parts(
        env=env,
        algorithm=algorithm,
        rollout=Rollout(env, algorithm.policy, rollout_length=config.training.rollout_length),
        evaluate=play,
        baselines={"first": first},
        replay=lambda states, steps: {"frames": states["x"].squeeze(-1).tolist()},
    )


def run(
    path: Path | RunFolder, config: RunConfig[Any, Any, Any], *, parts: Parts | None = None, callbacks=()
) -> RunFolder:
    """Begin a run at `path`, or continue the one that is there."""
    folder = path if isinstance(path, RunFolder) else RunFolder.create(path, config.to_plain())
    with folder.locked():
        trainer = Trainer(config, parts or toy_parts(config), folder, callbacks=callbacks)
        trainer.restore()
        trainer.run()
    return folder


def batch_of(env: ToyEnv, steps: int) -> TensorDict:
    """A batch that a random policy collected."""
    return Rollout(env, env.rand_action, rollout_length=steps).collect()
