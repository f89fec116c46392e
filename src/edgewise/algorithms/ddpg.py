"""Deep deterministic policy gradient (https://arxiv.org/abs/1509.02971), one actor for all robots."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.climbing import Climbing
from edgewise.algorithms.off_policy import Metrics
from edgewise.algorithms.off_policy_config import DDPGConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import smoothed, squash
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.networks import EgoActor, EgoCritic
from edgewise.models.config import EgoConfig
from edgewise.objectives.temporal_difference import bootstrapped


class DDPG(Climbing[DDPGConfig]):
    """An actor that climbs a critic of its actions; while it collects, normal noise is added.

    Example:
        >>> agent = DDPG(EgoSpec(), env.actions, config=DDPGConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, steps=16).collect())
    """

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Actor and critic."""
        self.box = ActionBox.of(actions)
        actor = EgoActor(spec, model, outputs=self.box.dim)
        return nn.ModuleDict({"actor": actor, "critic": EgoCritic(spec, model, dim=self.box.dim)})

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step of the critic, then one of the actor."""
        critic, ego = self.networks["critic"], samples["ego"]
        value = critic(ego, self.box.inward(samples["action"]))
        target = self.target(samples)
        errors = functional.huber_loss(value, target, reduction="none", delta=self.config.huber_delta)
        loss = (samples["weight"] * errors).mean()
        norm = self.descend("critic", loss)
        actor_loss = -critic(ego, squash(self.networks["actor"](ego))).mean()
        actor_norm = self.descend("actor", actor_loss)
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": value.detach().mean(),
            "gradient_norm": norm,
            "actor_gradient_norm": actor_norm,
        }
        return metrics, (value.detach() - target).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """What the values should have been, `[M]`."""
        ego = samples["next_ego"]
        action = smoothed(squash(self.targets["actor"](ego)), self.config.target_noise)
        following = self.targets["critic"](ego, action)
        return bootstrapped(samples["reward"], samples["discount"], following=following)
