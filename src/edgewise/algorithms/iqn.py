"""Implicit quantile networks (https://arxiv.org/abs/1806.06923): returns as quantiles, risk at will."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.off_policy import Metrics, OffPolicy, exploring
from edgewise.algorithms.off_policy_config import IQNConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import num_choices
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.quantile import QuantileValues, even_levels, random_levels
from edgewise.models.config import EgoConfig
from edgewise.objectives.margin import large_margin
from edgewise.objectives.quantile import quantile_huber
from edgewise.objectives.risk import scale_levels, tail_share
from edgewise.objectives.temporal_difference import bootstrapped, chosen, double_value


class IQN(OffPolicy[IQNConfig]):
    """Quantiles of the return of every choice; the one whose quantiles have the highest mean is taken.

    A target takes one action for all its quantiles, the one of the best mean: the best of each quantile by
    itself would be the value of an action that does not exist.

    Example:
        >>> agent = IQN(EgoSpec(), env.actions, config=IQNConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, steps=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """One network."""
        self.metres = model.metres
        return nn.ModuleDict({"network": QuantileValues(spec, model, num_actions=num_choices(actions))})

    def act(self, ego: TensorDictBase) -> Tensor:
        """The choice of the best mean over even levels of all returns, or of the tail that counts."""
        config = self.config
        count = config.exploring_quantiles if exploring() else config.acting_quantiles
        share = tail_share(ego, self.config, metres=self.metres)
        levels = scale_levels(even_levels(ego["self"], count), share)
        return self.networks["network"](ego, levels).mean(-2).argmax(-1)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step on the quantile Huber loss."""
        levels = random_levels(samples["ego", "self"], self.config.quantiles)
        quantiles = chosen(self.networks["network"](samples["ego"], levels), samples["action"])
        target = self.target(samples)
        errors = quantile_huber(quantiles, target, levels=levels, kappa=self.config.kappa)
        loss = (samples["weight"] * errors).mean()
        norm = self.descend("network", loss)
        value = quantiles.detach().mean(-1)
        metrics = {"loss": loss.detach(), "value": value.mean(), "gradient_norm": norm}
        return metrics, (value - target.mean(-1)).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Samples of what the return should have been, `[M, target_quantiles]`."""
        ego = samples["next_ego"]
        levels = random_levels(ego["self"], self.config.target_quantiles)
        following = self.targets["network"](ego, levels)
        network = (self.networks if self.config.double else self.targets)["network"]
        even = even_levels(ego["self"], self.config.exploring_quantiles)
        best = double_value(following, network(ego, even).mean(-2))
        return bootstrapped(samples["reward"], samples["discount"], following=best)

    def returns(self, ego: TensorDictBase) -> Tensor:
        """Quantiles of the return of the choice that is taken, `[M, acting_quantiles]`."""
        quantiles = self.networks["network"](ego, even_levels(ego["self"], self.config.acting_quantiles))
        return chosen(quantiles, self.act(ego))

    def imitation(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """The means of all other choices stay below that of the one taken."""
        levels = even_levels(samples["ego", "self"], self.config.quantiles)
        values = self.networks["network"](samples["ego"], levels).mean(-2)
        return {"network": large_margin(values, samples["action"]).mean()}
