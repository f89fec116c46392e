"""AC-IQN (https://arxiv.org/abs/2412.09466): a deterministic actor with an implicit quantile critic."""

from __future__ import annotations

from typing import cast

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.deterministic_actor import DeterministicActorCritic
from edgewise.algorithms.off_policy import Metrics
from edgewise.algorithms.off_policy_config import ACIQNConfig
from edgewise.algorithms.risk import tail_share
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import smooth_action, squash
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.networks import EgoActor
from edgewise.models.agents.quantile import QuantileCritic, even_levels, random_levels
from edgewise.models.config import EgoConfig
from edgewise.objectives.quantile import quantile_huber
from edgewise.objectives.risk import scale_levels
from edgewise.objectives.temporal_difference import td_target

SHOWN = 32
"""Number of quantiles of a return in recorded episodes."""


class ACIQN(DeterministicActorCritic[ACIQNConfig]):
    """A deterministic actor that maximises the mean or the CVaR of its critic's quantiles.

    The critic always learns whole distributions. The risk setting applies to the actor's loss, since the
    critic is not used for acting.

    Example:
        >>> agent = ACIQN(EgoSpec(), env.actions, config=ACIQNConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Build the actor and the quantile critic."""
        self.box, self.units = ActionBox.of(actions), model.units
        actor = EgoActor(spec, model, outputs=self.box.dim)
        return nn.ModuleDict({"actor": actor, "critic": QuantileCritic(spec, model, dim=self.box.dim)})

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the actor and the critic, both with the critic as it was before.

        With `risk="mean"`, the actor's loss uses the levels of the critic's loss, so both share one pass
        through the critic's encoder.
        """
        action, ego = self.box.to_unit(samples["action"]), samples["ego"]
        critic = cast(QuantileCritic, self.networks["critic"])
        levels = random_levels(ego["self"], self.config.quantiles)
        features = critic.features(ego, levels)
        quantiles = critic.from_features(features, action)
        target = self.target(samples)
        td_loss = quantile_huber(quantiles, target, levels=levels, kappa=self.config.kappa)
        loss = (samples["weight"] * td_loss).mean()
        shared = features.detach() if self.config.risk == "mean" else None
        actor_loss = -self.policy_quantiles(ego, shared).mean()
        actor_norm = self.optimizer_step("actor", actor_loss)
        norm = self.optimizer_step("critic", loss)
        value = quantiles.detach().mean(-1)
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": value.mean(),
            "gradient_norm": norm,
            "actor_gradient_norm": actor_norm,
        }
        return metrics, (value - target.mean(-1)).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute samples of the target return, `[M, target_quantiles]`."""
        ego = samples["next_ego"]
        levels = random_levels(ego["self"], self.config.target_quantiles)
        action = smooth_action(squash(self.targets["actor"](ego)), self.config.target_noise)
        next_value = self.targets["critic"](ego, action, levels)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def policy_quantiles(self, ego: TensorDictBase, features: Tensor | None = None) -> Tensor:
        """Return quantiles of the return of the actor's action, `[*B, quantiles]`, in the tail that counts.

        Args:
            ego: observations of agents.
            features: the critic's features, if they are known already at the levels to use.
        """
        if features is not None:
            critic = cast(QuantileCritic, self.networks["critic"])
            return critic.from_features(features, squash(self.networks["actor"](ego)))
        share = tail_share(ego, self.config, units=self.units)
        levels = scale_levels(random_levels(ego["self"], self.config.quantiles), share)
        return self.networks["critic"](ego, squash(self.networks["actor"](ego)), levels)

    def return_quantiles(self, ego: TensorDictBase) -> Tensor:
        """Return quantiles of the return of the actor's action, `[M, SHOWN]`."""
        levels = even_levels(ego["self"], SHOWN)
        return self.networks["critic"](ego, squash(self.networks["actor"](ego)), levels)
