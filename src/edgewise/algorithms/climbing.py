"""What agents share whose deterministic actor climbs a critic: acting, the pace of learning, imitation."""

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


class Climbing(OffPolicy[ConfigT]):
    """A network called `actor` whose squashed output is the action; a subclass has the critic and the losses.

    Attributes:
        box: the bounds of actions, set by `build`.
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict
    box: ActionBox

    def act(self, ego: TensorDictBase) -> Tensor:
        """What the actor says, and noise where it explores."""
        action = squash(self.networks["actor"](ego))
        if exploring():
            action = action + self.config.action_noise * torch.randn_like(action)
        return self.box.outward(action)

    def rate(self, part: str) -> float:
        """Slower for the actor."""
        share = self.config.actor_share if part == "actor" else 1.0
        return share * self.config.learning_rate

    def imitation(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """The actor's squared distance to what was done."""
        action = squash(self.networks["actor"](samples["ego"]))
        return {"actor": functional.mse_loss(action, self.box.inward(samples["action"]))}
