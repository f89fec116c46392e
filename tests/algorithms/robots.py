"""The smallest agent on the base of off-policy agents, and all six that ship, for rollouts of toy robots."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import nn

from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy import OffPolicy
from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.algorithms.registry import ALGORITHMS, algorithm_class, algorithm_config
from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.networks import QNetwork
from edgewise.models.config import EgoConfig

DISCRETE = ("dqn", "rainbow", "iqn")
CONTINUOUS = ("ac-iqn", "sac", "ddpg")
SMALL = {"minibatch_size": 16, "replay_size": 200, "learning_starts": 0, "updates_per_transition": 0.1}
ROBOTS = 3
MODEL = EgoConfig(hidden=16, self_width=8, object_width=8)


class Simple(OffPolicy[OffPolicyConfig]):
    """Values of choices, learnt by squared error; remembers what it was given to learn from."""

    def build(self, deciders):
        self.seen = []
        features, hidden = deciders.features("critic"), deciders.model.hidden
        network = QNetwork(features, hidden=hidden, num_actions=deciders.num_choices)
        return nn.ModuleDict({"network": network, "spare": nn.Linear(1, 1)})

    def act(self, observation):
        return self.networks["network"](observation).argmax(-1)

    def update(self, samples):
        self.seen.append(samples.clone())
        value = self.networks["network"](samples["observation"]).gather(-1, samples["action"].unsqueeze(-1))[
            :, 0
        ]
        with torch.no_grad():
            following = self.targets["network"](samples["next_observation"]).amax(-1)
        error = samples["reward"] + samples["discount"] * following - value
        loss = (samples["weight"] * error.square()).mean() + 0.0 * torch.rand(())
        norm = self.optimizer_step("network", loss)
        return {"loss": loss.detach(), "gradient_norm": norm, "drawn": torch.rand(())}, error.detach()

    def imitation_loss(self, samples):
        values = self.networks["network"](samples["observation"])
        return {"network": nn.functional.cross_entropy(values, samples["action"])}


def simple(*, seed=0, device="cpu", **settings):
    """The smallest agent."""
    torch.manual_seed(seed)
    return Simple(
        Deciders(AgentsDiscrete(ROBOTS, 25), MODEL, ego=EgoSpec(), per_agent=True),
        config=OffPolicyConfig(**SMALL | settings),
        seed=seed,
        device=device,
    )


def agent(name, *, seed=0, **settings):
    """One of the six."""
    layout = AgentsDiscrete(ROBOTS, 25) if name in DISCRETE else AgentsContinuous(ROBOTS, 2)
    torch.manual_seed(seed)
    return algorithm_class(name)(
        Deciders(layout, MODEL, ego=EgoSpec(), per_agent=True),
        config=algorithm_config(name)(**SMALL | settings),
        seed=seed,
    )


def observed(worlds=6, seed=0):
    """What robots see, `[worlds]`."""
    draw = torch.Generator().manual_seed(seed)
    shape = (worlds, ROBOTS)
    ego = {
        "self": torch.rand(*shape, 7, generator=draw),
        "objects": torch.rand(*shape, 5, 5, generator=draw),
        "mask": torch.rand(*shape, 5, generator=draw) < 0.5,
    }
    active = torch.ones(shape, dtype=torch.bool)
    return TensorDict({"agents": {"ego": ego, "active": active}}, [worlds])


OFF_POLICY = tuple(name for name in ALGORITHMS if name in DISCRETE + CONTINUOUS)
