"""Deep deterministic policy gradient (https://arxiv.org/abs/1509.02971); all agents share one actor."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.deterministic_actor import DeterministicActorCritic
from edgewise.algorithms.off_policy import Metrics
from edgewise.algorithms.off_policy_config import DDPGConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import smooth_action, squash
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.networks import EgoActor, EgoCritic
from edgewise.models.config import EgoConfig
from edgewise.objectives.temporal_difference import td_target


class DDPG(DeterministicActorCritic[DDPGConfig]):
    """A deterministic actor and a critic; Gaussian noise is added to actions while exploring.

    Example:
        >>> agent = DDPG(EgoSpec(), env.actions, config=DDPGConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Build the actor and the critic."""
        self.box = ActionBox.of(actions)
        actor = EgoActor(spec, model, outputs=self.box.dim)
        return nn.ModuleDict({"actor": actor, "critic": EgoCritic(spec, model, dim=self.box.dim)})

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the critic, then the actor."""
        critic, ego = self.networks["critic"], samples["ego"]
        value = critic(ego, self.box.to_unit(samples["action"]))
        target = self.target(samples)
        td_loss = functional.huber_loss(value, target, reduction="none", delta=self.config.huber_delta)
        loss = (samples["weight"] * td_loss).mean()
        norm = self.optimizer_step("critic", loss)
        actor_loss = -critic(ego, squash(self.networks["actor"](ego))).mean()
        actor_norm = self.optimizer_step("actor", actor_loss)
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
        """Compute the temporal-difference target with the target actor and critic, `[M]`."""
        ego = samples["next_ego"]
        action = smooth_action(squash(self.targets["actor"](ego)), self.config.target_noise)
        next_value = self.targets["critic"](ego, action)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)
