"""A deterministic actor that climbs a critic of implicit quantiles (https://arxiv.org/abs/2412.09466)."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.off_policy import Metrics, OffPolicy, exploring
from edgewise.algorithms.off_policy_config import ACIQNConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.arctan import squash
from edgewise.models.config import EgoConfig
from edgewise.models.ego import EgoSpec
from edgewise.models.ego_actions import ActionBox
from edgewise.models.ego_networks import EgoActor
from edgewise.models.quantile import QuantileCritic, random_levels
from edgewise.models.risk import scale_levels, tail_share
from edgewise.objectives.quantile import quantile_huber
from edgewise.objectives.temporal_difference import bootstrapped


class ACIQN(OffPolicy[ACIQNConfig]):
    """An actor that climbs the mean of its returns' quantiles, or of the worst of them.

    The critic learns whole distributions whatever the risk; which part of them counts is decided where the
    actor learns, since acting is the actor alone.

    Example:
        >>> agent = ACIQN(EgoSpec(), env.actions, config=ACIQNConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, steps=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Actor and critic."""
        self.box, self.metres = ActionBox.of(actions), model.metres
        actor = EgoActor(spec, model, outputs=self.box.dim)
        return nn.ModuleDict({"actor": actor, "critic": QuantileCritic(spec, model, dim=self.box.dim)})

    def act(self, ego: TensorDictBase) -> Tensor:
        """What the actor says, and noise where it explores."""
        action = squash(self.networks["actor"](ego))
        if exploring():
            action = action + self.config.action_noise * torch.randn_like(action)
        return self.box.outward(action)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step of the critic, then one of the actor."""
        action, ego = self.box.inward(samples["action"]), samples["ego"]
        levels = random_levels(ego["self"], self.config.quantiles)
        quantiles = self.networks["critic"](ego, action, levels)
        target = self.target(samples)
        errors = quantile_huber(quantiles, target, levels=levels, kappa=self.config.kappa)
        loss = (samples["weight"] * errors).mean()
        norm = self.descend("critic", loss)
        actor_loss = -self.worth(ego).mean()
        actor_norm = self.descend("actor", actor_loss)
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
        following = self.targets["critic"](ego, squash(self.targets["actor"](ego)), levels)
        return bootstrapped(samples["reward"], samples["discount"], following=following)

    def worth(self, ego: TensorDictBase) -> Tensor:
        """Quantiles, of all returns or of the tail that counts, of what the actor does, `[*B, quantiles]`."""
        share = tail_share(ego, self.config, metres=self.metres)
        levels = scale_levels(random_levels(ego["self"], self.config.quantiles), share)
        return self.networks["critic"](ego, squash(self.networks["actor"](ego)), levels)

    def imitation(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """The actor's squared distance to what was done."""
        action = squash(self.networks["actor"](samples["ego"]))
        return {"actor": functional.mse_loss(action, self.box.inward(samples["action"]))}
