"""Soft actor-critic (https://arxiv.org/abs/1812.05905) with twin critics and a learnt temperature."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.discrete_sac import DiscreteSAC
from edgewise.algorithms.hybrid_sac import HybridSAC
from edgewise.algorithms.off_policy import OffPolicy, exploring
from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.algorithms.setup import Setup
from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import AgentsContinuous, ComposedLayout
from edgewise.models.agents.actions import ActionBox
from edgewise.models.agents.arctan import ArctanNormal
from edgewise.models.agents.networks import ActionCritic, PolicyNetwork
from edgewise.models.agents.temperature import Temperature
from edgewise.objectives.entropy import soft_value, temperature_loss
from edgewise.objectives.temporal_difference import td_target

LOG_SCALE = (-20.0, 2.0)
"""Bounds of the log standard deviation of actions before squashing."""


class TwinCritics(nn.Module):
    """Two critics with separate weights; a loop over two is faster than one pass over stacked weights.

    Args:
        deciders: who decides, on what they observe.
        dim: dimensions of an action.
    """

    def __init__(self, deciders: Deciders, *, dim: int) -> None:
        super().__init__()
        hidden = deciders.model.hidden
        self.first, self.second = (
            ActionCritic(deciders.features("critic"), hidden=hidden, dim=dim) for _ in range(2)
        )

    def forward(self, observation: TensorDictBase, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of both critics, each `[*D]`."""
        return self.first(observation, action), self.second(observation, action)


class SAC(OffPolicy[SACConfig]):
    """A stochastic actor trained on the minimum of two critics plus an entropy bonus.

    It samples actions while exploring and returns the squashed mean otherwise. Where actions are discrete,
    `from_setup` builds a `DiscreteSAC`, and where they are composed a `HybridSAC`.

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = SAC(deciders_of(env, ValueConfig()), config=SACConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    @classmethod
    def from_setup(cls, setup: Setup) -> Any:
        """Build the algorithm for a run, for composed, discrete or continuous actions."""
        if isinstance(setup.env.actions, ComposedLayout):
            return HybridSAC.from_setup(setup)
        continuous = isinstance(setup.env.actions, AgentsContinuous)
        return super().from_setup(setup) if continuous else DiscreteSAC.from_setup(setup)

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the actor, the twin critics and the temperature.

        Raises:
            ConfigError: `dueling` is set.
        """
        if self.config.dueling:
            raise ConfigError(
                "algorithm.dueling: advantages are relative to those of other choices, and these actions are "
                "continuous",
                hint="leave it out",
            )
        self.box = ActionBox.of(deciders.actions)
        actor = deciders.features("actor")
        parts = {
            "actor": PolicyNetwork(actor, hidden=deciders.model.hidden, outputs=2 * self.box.dim),
            "critics": TwinCritics(deciders, dim=self.box.dim),
            "temperature": Temperature(self.config.initial_temperature),
        }
        return nn.ModuleDict(parts)

    @property
    def target_entropy(self) -> float:
        """The target of the entropy of an action; by default minus the number of its dimensions."""
        target = self.config.target_entropy
        return -float(self.box.dim) if target is None else target

    def act(self, observation: TensorDictBase) -> Tensor:
        """Sample an action while exploring, else return the mode, `[*D, dim]`."""
        distribution = self.distribution(observation)
        return self.box.from_unit(distribution.sample() if exploring() else distribution.mode)

    def distribution(self, observation: TensorDictBase) -> ArctanNormal:
        """Return the policy's distribution over actions within (-1, 1)."""
        loc, log_scale = self.networks["actor"](observation).chunk(2, -1)
        return ArctanNormal(loc, log_scale.clamp(*LOG_SCALE))

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the critics, then the actor and the temperature."""
        action, target = self.box.to_unit(samples["action"]), self.target(samples)
        first, second = self.networks["critics"](samples["observation"], action)
        td_loss = (first - target).square() + (second - target).square()
        loss = self.mean(td_loss, samples)
        norm = self.optimizer_step("critics", loss)
        actor_loss, log_prob = self.actor_loss(samples)
        temperature = self.networks["temperature"]()
        alpha_loss = temperature_loss(temperature, log_prob, target_entropy=self.target_entropy)
        norms = self.optimizer_steps({"actor": actor_loss, "temperature": alpha_loss})
        value = first.detach()
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": self.mean_counted(value, samples),
            "entropy": -log_prob.mean(),
            "temperature": temperature.detach(),
            "gradient_norm": norm,
            "actor_gradient_norm": norms["actor"],
        }
        return metrics, (value - target).abs()

    def actor_loss(self, samples: TensorDictBase) -> tuple[Tensor, Tensor]:
        """Compute minus the soft value of new actions, 0-d, and their log-probabilities, detached.

        The log-probabilities are `[M]`, or their mean, 0-d, if some deciders do not count.
        """
        observation = samples["observation"]
        action, log_prob = self.distribution(observation).rsample_and_log_prob()
        first, second = self.networks["critics"](observation, action)
        temperature = self.networks["temperature"]().detach()
        value = soft_value(first, second, log_prob=log_prob, temperature=temperature)
        counted = samples.get("counted", None)
        log_prob = log_prob if counted is None else self.masked_mean(log_prob, counted)
        return -self.mean_counted(value, samples), log_prob.detach()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the soft temporal-difference target with the online actor and target critics, `[*D]`."""
        observation = samples["next_observation"]
        action, log_prob = self.distribution(observation).rsample_and_log_prob()
        first, second = self.targets["critics"](observation, action)
        temperature = self.networks["temperature"]()
        next_value = soft_value(first, second, log_prob=log_prob, temperature=temperature)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the mean squared error between the policy's mode and the stored action."""
        action = self.distribution(samples["observation"]).mode
        error = functional.mse_loss(action, self.box.to_unit(samples["action"]), reduction="none")
        return {"actor": self.mean_counted(error, samples)}
