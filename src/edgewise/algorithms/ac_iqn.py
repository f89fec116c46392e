"""A deterministic actor that climbs a critic of implicit quantiles (https://arxiv.org/abs/2412.09466)."""

from __future__ import annotations

from typing import cast

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.climbing import Climbing
from edgewise.algorithms.off_policy import Metrics
from edgewise.algorithms.off_policy_config import ACIQNConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import smoothed, squash
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.networks import EgoActor
from edgewise.models.agents.quantile import QuantileCritic, even_levels, random_levels
from edgewise.models.config import EgoConfig
from edgewise.objectives.quantile import quantile_huber
from edgewise.objectives.risk import scale_levels, tail_share
from edgewise.objectives.temporal_difference import bootstrapped

SHOWN = 32
"""Quantiles of a return in a picture."""


class ACIQN(Climbing[ACIQNConfig]):
    """An actor that climbs the mean of its returns' quantiles, or of the worst of them.

    The critic learns whole distributions whatever the risk; which part of them counts is decided where the
    actor learns, since acting is the actor alone.

    Example:
        >>> agent = ACIQN(EgoSpec(), env.actions, config=ACIQNConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, steps=16).collect())
    """

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Actor and critic."""
        self.box, self.metres = ActionBox.of(actions), model.metres
        actor = EgoActor(spec, model, outputs=self.box.dim)
        return nn.ModuleDict({"actor": actor, "critic": QuantileCritic(spec, model, dim=self.box.dim)})

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step of the actor and one of the critic, both by the critic as it was.

        Where all returns count, the actor climbs at the levels of the critic's loss, and one pass over what
        was seen serves both.
        """
        action, ego = self.box.inward(samples["action"]), samples["ego"]
        critic = cast(QuantileCritic, self.networks["critic"])
        levels = random_levels(ego["self"], self.config.quantiles)
        features = critic.features(ego, levels)
        quantiles = critic.of(features, action)
        target = self.target(samples)
        errors = quantile_huber(quantiles, target, levels=levels, kappa=self.config.kappa)
        loss = (samples["weight"] * errors).mean()
        actor_loss = -self.worth(ego, features.detach() if self.config.risk == "mean" else None).mean()
        actor_norm = self.descend("actor", actor_loss)
        norm = self.descend("critic", loss)
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
        """Samples of what the return should have been, `[M, target_quantiles]`."""
        ego = samples["next_ego"]
        levels = random_levels(ego["self"], self.config.target_quantiles)
        action = smoothed(squash(self.targets["actor"](ego)), self.config.target_noise)
        following = self.targets["critic"](ego, action, levels)
        return bootstrapped(samples["reward"], samples["discount"], following=following)

    def worth(self, ego: TensorDictBase, features: Tensor | None = None) -> Tensor:
        """Quantiles, of all returns or of the tail that counts, of what the actor does, `[*B, quantiles]`.

        Args:
            ego: what is seen.
            features: the critic's, where they are at hand at the levels that are wanted.
        """
        if features is not None:
            critic = cast(QuantileCritic, self.networks["critic"])
            return critic.of(features, squash(self.networks["actor"](ego)))
        share = tail_share(ego, self.config, metres=self.metres)
        levels = scale_levels(random_levels(ego["self"], self.config.quantiles), share)
        return self.networks["critic"](ego, squash(self.networks["actor"](ego)), levels)

    def returns(self, ego: TensorDictBase) -> Tensor:
        """Quantiles of the return of what the actor does, `[M, SHOWN]`."""
        levels = even_levels(ego["self"], SHOWN)
        return self.networks["critic"](ego, squash(self.networks["actor"](ego)), levels)
