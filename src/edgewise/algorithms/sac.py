"""Soft actor-critic (https://arxiv.org/abs/1812.05905) with twin critics and a learnt temperature."""

from __future__ import annotations

import math

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.off_policy import Metrics, OffPolicy, exploring
from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import ArctanNormal
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.networks import EgoActor, EgoCritic
from edgewise.models.config import EgoConfig
from edgewise.objectives.entropy import soft_value, temperature_loss
from edgewise.objectives.temporal_difference import td_target

LOG_SCALE = (-20.0, 2.0)
"""Bounds of the log standard deviation of actions before squashing."""


class Temperature(nn.Module):
    """The temperature α, the weight of the entropy bonus, learnt as its logarithm.

    Args:
        initial: the initial temperature.
    """

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(initial)))

    def forward(self) -> Tensor:
        """Return the temperature, 0-d."""
        return self.log.exp()


class TwinCritics(nn.Module):
    """Two critics with separate weights; a loop over two is faster than one pass over stacked weights.

    Args:
        spec: sizes of an agent's observation.
        model: see `EgoConfig`.
        dim: dimensions of an action.
    """

    def __init__(self, spec: EgoSpec, model: EgoConfig, *, dim: int) -> None:
        super().__init__()
        self.first, self.second = (EgoCritic(spec, model, dim=dim) for _ in range(2))

    def forward(self, ego: TensorDictBase, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of both critics, each `[*B]`."""
        return self.first(ego, action), self.second(ego, action)


class SAC(OffPolicy[SACConfig]):
    """A stochastic actor trained on the minimum of two critics plus an entropy bonus.

    It samples actions while exploring and returns the squashed mean otherwise.

    Example:
        >>> agent = SAC(EgoSpec(), env.actions, config=SACConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Build the actor, the twin critics and the temperature."""
        self.box = ActionBox.of(actions)
        parts = {
            "actor": EgoActor(spec, model, outputs=2 * self.box.dim),
            "critics": TwinCritics(spec, model, dim=self.box.dim),
            "temperature": Temperature(self.config.initial_temperature),
        }
        return nn.ModuleDict(parts)

    @property
    def target_entropy(self) -> float:
        """The target of the entropy of an action; by default minus the number of its dimensions."""
        target = self.config.target_entropy
        return -float(self.box.dim) if target is None else target

    def act(self, ego: TensorDictBase) -> Tensor:
        """Sample an action while exploring, else return the mode, `[*B, dim]`."""
        distribution = self.distribution(ego)
        return self.box.from_unit(distribution.sample() if exploring() else distribution.mode)

    def distribution(self, ego: TensorDictBase) -> ArctanNormal:
        """Return the policy's distribution over actions within (-1, 1)."""
        loc, log_scale = self.networks["actor"](ego).chunk(2, -1)
        return ArctanNormal(loc, log_scale.clamp(*LOG_SCALE))

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the critics, then the actor, then the temperature."""
        action, ego, target = self.box.to_unit(samples["action"]), samples["ego"], self.target(samples)
        first, second = self.networks["critics"](ego, action)
        td_loss = (first - target).square() + (second - target).square()
        loss = (samples["weight"] * td_loss).mean()
        norm = self.optimizer_step("critics", loss)
        actor_loss, log_prob = self.actor_loss(ego)
        actor_norm = self.optimizer_step("actor", actor_loss)
        temperature = self.networks["temperature"]()
        alpha_loss = temperature_loss(temperature, log_prob, target_entropy=self.target_entropy)
        self.optimizer_step("temperature", alpha_loss)
        value = first.detach()
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": value.mean(),
            "entropy": -log_prob.mean(),
            "temperature": temperature.detach(),
            "gradient_norm": norm,
            "actor_gradient_norm": actor_norm,
        }
        return metrics, (value - target).abs()

    def actor_loss(self, ego: TensorDictBase) -> tuple[Tensor, Tensor]:
        """Compute minus the soft value of new actions, 0-d, and their log-probabilities `[M]`, detached."""
        action, log_prob = self.distribution(ego).rsample_and_log_prob()
        first, second = self.networks["critics"](ego, action)
        temperature = self.networks["temperature"]().detach()
        value = soft_value(first, second, log_prob=log_prob, temperature=temperature)
        return -value.mean(), log_prob.detach()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the soft temporal-difference target with the online actor and target critics, `[M]`."""
        ego = samples["next_ego"]
        action, log_prob = self.distribution(ego).rsample_and_log_prob()
        first, second = self.targets["critics"](ego, action)
        temperature = self.networks["temperature"]()
        next_value = soft_value(first, second, log_prob=log_prob, temperature=temperature)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the mean squared error between the policy's mode and the stored action."""
        action = self.distribution(samples["ego"]).mode
        return {"actor": functional.mse_loss(action, self.box.to_unit(samples["action"]))}
