"""AC-IQN (https://arxiv.org/abs/2412.09466): a deterministic actor with an implicit quantile critic."""

from __future__ import annotations

from typing import cast

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.deterministic_actor import DeterministicActorCritic
from edgewise.algorithms.off_policy_config import ACIQNConfig
from edgewise.algorithms.risk import check_risk, tail_levels
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import smooth_action, squash
from edgewise.models.agents.networks import PolicyNetwork
from edgewise.models.agents.quantile import QuantileCritic, even_levels, random_levels
from edgewise.objectives.quantile import quantile_huber
from edgewise.objectives.temporal_difference import td_target

SHOWN = 32
"""Number of quantiles of a return in recorded episodes."""


class ACIQN(DeterministicActorCritic[ACIQNConfig]):
    """A deterministic actor that maximises the mean or the CVaR of its critic's quantiles.

    The critic always learns whole distributions. The risk setting applies to the actor's loss, since the
    critic is not used for acting.

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = ACIQN(deciders_of(env, ValueConfig()), config=ACIQNConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the actor and the quantile critic."""
        check_risk(self.config, deciders)
        self.box, model = ActionBox.of(deciders.actions), deciders.model
        actor = PolicyNetwork(deciders.features("actor"), hidden=model.hidden, outputs=self.box.dim)
        critic = QuantileCritic(
            deciders.features("critic"), hidden=model.hidden, cosines=model.cosines, dim=self.box.dim
        )
        return nn.ModuleDict({"actor": actor, "critic": critic})

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the actor and the critic, both with the critic as it was before.

        With `risk="mean"`, the actor's loss uses the levels of the critic's loss, so both share one pass
        through the critic's encoder.
        """
        action, observation = self.box.to_unit(samples["action"]), samples["observation"]
        critic = cast(QuantileCritic, self.networks["critic"])
        levels = random_levels(self.like, self.config.quantiles)
        features = critic.features(observation, levels)
        quantiles = critic.from_features(features, action)
        target = self.target(samples)
        td_loss = quantile_huber(quantiles, target, levels=levels, kappa=self.config.kappa)
        loss = self.mean(td_loss, samples)
        shared = features.detach() if self.config.risk == "mean" else None
        actor_loss = -self.mean_counted(self.policy_quantiles(observation, shared), samples)
        norms = self.optimizer_steps({"actor": actor_loss, "critic": loss})
        value = quantiles.detach().mean(-1)
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": self.mean_counted(value, samples),
            "gradient_norm": norms["critic"],
            "actor_gradient_norm": norms["actor"],
        }
        return metrics, (value - target.mean(-1)).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute samples of the target return, `[*D, target_quantiles]`."""
        observation = samples["next_observation"]
        levels = random_levels(self.like, self.config.target_quantiles)
        action = smooth_action(squash(self.targets["actor"](observation)), self.config.target_noise)
        next_value = self.targets["critic"](observation, action, levels)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def policy_quantiles(self, observation: TensorDictBase, features: Tensor | None = None) -> Tensor:
        """Return quantiles of the return of the actor's action, `[*D, quantiles]`, in the tail that counts.

        Args:
            observation: what the deciders observe.
            features: the critic's features, if they are known already at the levels to use.
        """
        if features is not None:
            critic = cast(QuantileCritic, self.networks["critic"])
            return critic.from_features(features, squash(self.networks["actor"](observation)))
        levels = random_levels(self.like, self.config.quantiles)
        levels = tail_levels(levels, observation, self.config, self.deciders)
        return self.networks["critic"](observation, squash(self.networks["actor"](observation)), levels)

    def return_quantiles(self, observation: TensorDictBase) -> Tensor:
        """Return quantiles of the return of the actor's action, `[*D, SHOWN]`."""
        levels = even_levels(self.like, SHOWN)
        return self.networks["critic"](observation, squash(self.networks["actor"](observation)), levels)
