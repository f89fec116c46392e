"""Deep Q-learning (https://arxiv.org/abs/1312.5602) with double Q-targets (https://arxiv.org/abs/1509.06461)."""

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
from edgewise.models.agents.networks import EgoQNetwork
from edgewise.models.config import EgoConfig
from edgewise.objectives.margin import large_margin
from edgewise.objectives.temporal_difference import double_q_value, gather_actions, td_target


class DQN(OffPolicy[DQNConfig]):
    """Deep Q-network with ε-greedy exploration; all agents share one network.

    Example:
        >>> agent = DQN(EgoSpec(), env.actions, config=DQNConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Build the Q-network."""
        num_actions, dueling = num_choices(actions), self.config.dueling
        return nn.ModuleDict({"network": EgoQNetwork(spec, model, num_actions=num_actions, dueling=dueling)})

    def act(self, ego: TensorDictBase) -> Tensor:
        """Return the greedy action, `[*B]`."""
        return self.networks["network"](ego).argmax(-1)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Minimise the Huber loss of the temporal-difference error."""
        value = gather_actions(self.networks["network"](samples["ego"]), samples["action"])
        target = self.target(samples)
        td_loss = functional.huber_loss(value, target, reduction="none", delta=self.config.huber_delta)
        loss = (samples["weight"] * td_loss).mean()
        norm = self.optimizer_step("network", loss)
        metrics = {"loss": loss.detach(), "value": value.detach().mean(), "gradient_norm": norm}
        return metrics, (value.detach() - target).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the temporal-difference target, `[M]`."""
        ego = samples["next_ego"]
        target = self.targets["network"](ego)
        online = self.networks["network"](ego) if self.config.double else target
        next_value = double_q_value(target, online)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the large-margin loss of DQfD."""
        values = self.networks["network"](samples["ego"])
        return {"network": large_margin(values, samples["action"]).mean()}
