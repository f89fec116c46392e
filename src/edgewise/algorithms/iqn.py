"""Implicit quantile networks (https://arxiv.org/abs/1806.06923) with risk-sensitive policies."""

from __future__ import annotations

from typing import cast

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy import OffPolicy, exploring
from edgewise.algorithms.off_policy_config import IQNConfig
from edgewise.algorithms.risk import check_risk, tail_levels
from edgewise.models.agents.quantile import QuantileQNetwork, even_levels, random_levels
from edgewise.objectives.margin import large_margin
from edgewise.objectives.quantile import quantile_huber
from edgewise.objectives.temporal_difference import gather_actions, td_target


class IQN(OffPolicy[IQNConfig]):
    """Quantiles of the return of every choice; acts by the highest mean, or by the highest CVaR.

    A target uses one action for all its quantiles, the one with the highest mean. Maximising each quantile
    separately would give the value of an action that does not exist.

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = IQN(deciders_of(env, ValueConfig()), config=IQNConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the quantile network."""
        check_risk(self.config, deciders)
        features = deciders.features("critic")
        network = QuantileQNetwork(
            features,
            hidden=deciders.model.hidden,
            cosines=deciders.model.cosines,
            num_actions=1 if features.per_choice else deciders.num_choices,
            dueling=self.config.dueling,
            sigma=0.5 if self.config.noisy else None,
        )
        return nn.ModuleDict({"network": network})

    def act(self, observation: TensorDictBase) -> Tensor:
        """Return the action whose return has the highest mean or CVaR, `[*D]`."""
        return self.scores(observation).argmax(-1)

    def scores(self, observation: TensorDictBase) -> Tensor:
        """Return the mean or the CVaR of the return of every action, `[*D, K]`."""
        config = self.config
        count = config.exploring_quantiles if exploring() else config.acting_quantiles
        levels = tail_levels(even_levels(self.like, count), observation, config, self.deciders)
        noise = "rows" if exploring() else "none"
        return self.networks["network"](observation, levels, noise).mean(-2)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Minimise the quantile Huber loss."""
        levels = random_levels(self.like, self.config.quantiles)
        network = cast(QuantileQNetwork, self.networks["network"])
        quantiles = network.of_actions(samples["observation"], samples["action"], levels, "shared")
        target = self.target(samples)
        td_loss = quantile_huber(quantiles, target, levels=levels, kappa=self.config.kappa)
        loss = self.mean(td_loss, samples)
        norm = self.optimizer_step("network", loss)
        value = quantiles.detach().mean(-1)
        metrics = {"loss": loss.detach(), "value": self.mean_counted(value, samples), "gradient_norm": norm}
        return metrics, (value - target.mean(-1)).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute samples of the target return, `[*D, target_quantiles]`."""
        observation = samples["next_observation"]
        levels = random_levels(self.like, self.config.target_quantiles)
        target = cast(QuantileQNetwork, self.targets["network"])
        network = cast(QuantileQNetwork, self.networks["network"]) if self.config.double else target
        even = even_levels(self.like, self.config.exploring_quantiles)
        best = network.means(observation, even, "shared").argmax(-1)
        next_value = target.of_actions(observation, best, levels, "shared")
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def return_quantiles(self, observation: TensorDictBase) -> Tensor:
        """Return quantiles of the return of the greedy action, `[*D, acting_quantiles]`."""
        levels = even_levels(self.like, self.config.acting_quantiles)
        return gather_actions(self.networks["network"](observation, levels), self.act(observation))

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the large-margin loss of DQfD on the mean returns."""
        levels = even_levels(self.like, self.config.quantiles)
        values = self.networks["network"](samples["observation"], levels).mean(-2)
        return {"network": self.mean_counted(large_margin(values, samples["action"]), samples)}
