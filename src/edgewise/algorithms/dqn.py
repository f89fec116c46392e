"""Deep Q-learning with double targets (https://arxiv.org/abs/1509.06461), one network for all robots."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.off_policy import Metrics, OffPolicy
from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import num_choices
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.networks import EgoValues
from edgewise.models.config import EgoConfig
from edgewise.objectives.margin import large_margin
from edgewise.objectives.temporal_difference import bootstrapped, chosen, double_value


class DQN(OffPolicy[DQNConfig]):
    """The value of every choice; the best one is taken.

    Example:
        >>> agent = DQN(EgoSpec(), env.actions, config=DQNConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, steps=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """One network."""
        choices, dueling = num_choices(actions), self.config.dueling
        return nn.ModuleDict({"network": EgoValues(spec, model, num_actions=choices, dueling=dueling)})

    def act(self, ego: TensorDictBase) -> Tensor:
        """The choice of highest value."""
        return self.networks["network"](ego).argmax(-1)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step on the Huber loss of the temporal difference."""
        value = chosen(self.networks["network"](samples["ego"]), samples["action"])
        target = self.target(samples)
        errors = functional.huber_loss(value, target, reduction="none", delta=self.config.huber_delta)
        loss = (samples["weight"] * errors).mean()
        norm = self.descend("network", loss)
        metrics = {"loss": loss.detach(), "value": value.detach().mean(), "gradient_norm": norm}
        return metrics, (value.detach() - target).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """What the values should have been, `[M]`."""
        ego = samples["next_ego"]
        following = self.targets["network"](ego)
        choosing = self.networks["network"](ego) if self.config.double else following
        best = double_value(following, choosing)
        return bootstrapped(samples["reward"], samples["discount"], following=best)

    def imitation(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """All other choices stay below the one taken."""
        values = self.networks["network"](samples["ego"])
        return {"network": large_margin(values, samples["action"]).mean()}
