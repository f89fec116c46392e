"""Implicit quantile networks (https://arxiv.org/abs/1806.06923) with risk-sensitive policies."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.off_policy import Metrics, OffPolicy, exploring
from edgewise.algorithms.off_policy_config import IQNConfig
from edgewise.algorithms.risk import tail_share
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import num_choices
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.quantile import QuantileQNetwork, even_levels, random_levels
from edgewise.models.config import EgoConfig
from edgewise.objectives.margin import large_margin
from edgewise.objectives.quantile import quantile_huber
from edgewise.objectives.risk import scale_levels
from edgewise.objectives.temporal_difference import double_q_value, gather_actions, td_target


class IQN(OffPolicy[IQNConfig]):
    """Quantiles of the return of every action; acts by the highest mean, or by the highest CVaR.

    A target uses one action for all its quantiles, the one with the highest mean. Maximising each quantile
    separately would give the value of an action that does not exist.

    Example:
        >>> agent = IQN(EgoSpec(), env.actions, config=IQNConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Build the quantile network."""
        self.units = model.units
        return nn.ModuleDict({"network": QuantileQNetwork(spec, model, num_actions=num_choices(actions))})

    def act(self, ego: TensorDictBase) -> Tensor:
        """Return the action whose return has the highest mean or CVaR, `[*B]`."""
        config = self.config
        count = config.exploring_quantiles if exploring() else config.acting_quantiles
        share = tail_share(ego, config, units=self.units)
        levels = scale_levels(even_levels(ego["self"], count), share)
        return self.networks["network"](ego, levels).mean(-2).argmax(-1)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Minimise the quantile Huber loss."""
        levels = random_levels(samples["ego", "self"], self.config.quantiles)
        quantiles = gather_actions(self.networks["network"](samples["ego"], levels), samples["action"])
        target = self.target(samples)
        td_loss = quantile_huber(quantiles, target, levels=levels, kappa=self.config.kappa)
        loss = (samples["weight"] * td_loss).mean()
        norm = self.optimizer_step("network", loss)
        value = quantiles.detach().mean(-1)
        metrics = {"loss": loss.detach(), "value": value.mean(), "gradient_norm": norm}
        return metrics, (value - target.mean(-1)).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute samples of the target return, `[M, target_quantiles]`."""
        ego = samples["next_ego"]
        levels = random_levels(ego["self"], self.config.target_quantiles)
        target = self.targets["network"](ego, levels)
        network = (self.networks if self.config.double else self.targets)["network"]
        even = even_levels(ego["self"], self.config.exploring_quantiles)
        next_value = double_q_value(target, network(ego, even).mean(-2))
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def return_quantiles(self, ego: TensorDictBase) -> Tensor:
        """Return quantiles of the return of the greedy action, `[M, acting_quantiles]`."""
        quantiles = self.networks["network"](ego, even_levels(ego["self"], self.config.acting_quantiles))
        return gather_actions(quantiles, self.act(ego))

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the large-margin loss of DQfD on the mean returns."""
        levels = even_levels(samples["ego", "self"], self.config.quantiles)
        values = self.networks["network"](samples["ego"], levels).mean(-2)
        return {"network": large_margin(values, samples["action"]).mean()}
