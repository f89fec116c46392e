"""Deep deterministic policy gradient (https://arxiv.org/abs/1509.02971); all agents share one actor."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.deterministic_actor import DeterministicActorCritic
from edgewise.algorithms.off_policy_config import DDPGConfig
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import smooth_action, squash
from edgewise.models.agents.networks import ActionCritic, PolicyNetwork
from edgewise.objectives.temporal_difference import td_target


class DDPG(DeterministicActorCritic[DDPGConfig]):
    """A deterministic actor and a critic; Gaussian noise is added to actions while exploring.

    With `mixing`, the critic values a team: its members' values are mixed into one, which learns from the
    reward of the team (FACMAC, https://arxiv.org/abs/2003.06709).

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = DDPG(deciders_of(env, ValueConfig()), config=DDPGConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the actor and the critic."""
        self.box, hidden = ActionBox.of(deciders.actions), deciders.model.hidden
        actor = PolicyNetwork(deciders.features("actor"), hidden=hidden, outputs=self.box.dim)
        critic = ActionCritic(
            deciders.features("critic"), hidden=hidden, dim=self.box.dim, mixer=deciders.mixer()
        )
        return nn.ModuleDict({"actor": actor, "critic": critic})

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the critic, then the actor."""
        critic, observation = self.networks["critic"], samples["observation"]
        value = critic(observation, self.box.to_unit(samples["action"]))
        target = self.target(samples)
        td_loss = functional.huber_loss(value, target, reduction="none", delta=self.config.huber_delta)
        loss = self.mean(td_loss, samples)
        norm = self.optimizer_step("critic", loss)
        climbed = critic(observation, squash(self.networks["actor"](observation)))
        actor_loss = -self.mean_counted(climbed, samples)
        actor_norm = self.optimizer_step("actor", actor_loss)
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": self.mean_counted(value.detach(), samples),
            "gradient_norm": norm,
            "actor_gradient_norm": actor_norm,
        }
        return metrics, (value.detach() - target).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the temporal-difference target with the target actor and critic, `[*D]`."""
        observation = samples["next_observation"]
        action = smooth_action(squash(self.targets["actor"](observation)), self.config.target_noise)
        next_value = self.targets["critic"](observation, action)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)
