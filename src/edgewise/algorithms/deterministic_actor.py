"""Shared parts of algorithms with a deterministic actor: acting, learning rates and imitation."""

from __future__ import annotations

from typing import TypeVar

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.off_policy import OffPolicy, exploring
from edgewise.algorithms.off_policy_config import ContinuousConfig
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import squash

ConfigT = TypeVar("ConfigT", bound=ContinuousConfig)


class DeterministicActorCritic(OffPolicy[ConfigT]):
    """A deterministic policy, the squashed output of the network `actor`; subclasses add critic and losses.

    Attributes:
        box: the bounds of actions, set by `build`.
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict
    box: ActionBox

    def act(self, observation: TensorDictBase) -> Tensor:
        """Return the actor's action, with Gaussian noise while exploring, `[*D, dim]`."""
        noisy = exploring()
        action = squash(self.networks["actor"](observation))
        if noisy:
            action = action + self.config.action_noise * torch.randn_like(action)
        return self.box.from_unit(action)

    def learning_rate(self, part: str) -> float:
        """Return the learning rate of a network; the actor's is scaled by `actor_share`."""
        share = self.config.actor_share if part == "actor" else 1.0
        return share * self.config.learning_rate

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the mean squared error between the actor's action and the stored one."""
        action = squash(self.networks["actor"](samples["observation"]))
        error = functional.mse_loss(action, self.box.to_unit(samples["action"]), reduction="none")
        return {"actor": self.mean_counted(error, samples)}
