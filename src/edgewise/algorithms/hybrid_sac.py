"""Soft actor-critic for composed actions: one choice and any numbers (https://arxiv.org/abs/1912.11077).

Expectations over the choice are exact sums over its values; numbers are sampled with gradients, for each
value of the choice if they depend on it. Choice and numbers have a temperature each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy import OffPolicy, exploring
from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ComposedLayout
from edgewise.models.agents.temperature import Temperature
from edgewise.models.composed_head import part_values
from edgewise.models.composed_value import ComposedActor, ComposedCritic
from edgewise.models.config import ValueConfig
from edgewise.models.distributions.composed import ComposedDistribution
from edgewise.models.distributions.masked import MaskedCategorical
from edgewise.models.distributions.squashed import SquashedNormal
from edgewise.objectives.temporal_difference import td_target

ENTROPY_SHARE = 0.3
"""Default target of the entropy of the choice, as a share of that of a uniform one."""


class Expanded(NamedTuple):
    """Actions of a policy: every value of the choice, with sampled numbers.

    Attributes:
        values: of the parts by name, `[K, *B, ...]` or `[*B, ...]`.
        log_choice: `[K, *B]`, of each value of the choice; zero, with K = 1, if there is none.
        log_numbers: `[K, *B]` or `[*B]`, of the sampled numbers; zero if there are none.
        entropy_target: `[*B]`, that of the choice by default.
    """

    values: dict[str, Tensor]
    log_choice: Tensor
    log_numbers: Tensor
    entropy_target: Tensor


class HybridSAC(OffPolicy[SACConfig]):
    """A stochastic actor over composed actions, trained on the minimum of two critics plus entropies.

    It samples actions while exploring and takes the mode of each part otherwise.

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = HybridSAC(deciders_of(env, ValueConfig()), config=SACConfig())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the actor, the twin critics and the temperatures.

        Raises:
            ConfigError: there are several choices, or a category for each entity; or `dueling` is set.
        """
        layout, model = deciders.actions, deciders.model
        if self.config.dueling:
            raise ConfigError(
                "algorithm.dueling: composed actions have no dueling critics", hint="leave it out"
            )
        assert isinstance(layout, ComposedLayout)
        assert isinstance(model, ValueConfig)
        assert deciders.graph is not None
        self.layout = layout
        choices = [part for part in layout.parts if part.kind != "number"]
        if len(choices) > 1 or any(not part.is_single_choice for part in choices):
            raise ConfigError(
                f"sac sums over the values of one choice, and {layout!r} has more of them",
                hint="use ppo, which takes any composed action",
            )
        self.dimensions = sum(
            part.dim for part in layout.parts if part.kind == "number" and part.of == "graph"
        )
        graph = deciders.graph
        critics = nn.ModuleList(ComposedCritic(graph, layout, model) for _ in range(2))
        parts = {
            "actor": ComposedActor(graph, layout, model),
            "critics": critics,
            "temperature": Temperature(self.config.initial_temperature),
            "choice_temperature": Temperature(self.config.initial_temperature),
        }
        return nn.ModuleDict(parts)

    def act(self, observation: TensorDictBase) -> Tensor:
        """Sample an action while exploring, else return the mode of each part, `[*B, W]`."""
        distribution: ComposedDistribution = self.networks["actor"](observation, check=exploring())
        return distribution.sample() if exploring() else distribution.mode

    def expand(self, distribution: ComposedDistribution) -> Expanded:
        """Return every value of the choice with numbers sampled with gradients."""
        values: dict[str, Tensor] = {}
        zero = torch.zeros(distribution.batch_shape, device=self.device)
        log_choice, log_numbers, target = zero.unsqueeze(0), zero, zero
        for part in self.layout.parts:
            of = distribution.of(part, values)
            if isinstance(of, SquashedNormal):
                drawn, log_prob = of.rsample_and_log_prob()
                values[part.name] = drawn.squeeze(-1) if part.dim == 1 else drawn
                log_numbers = log_numbers + (log_prob if part.of == "graph" else log_prob.sum(-1))
                continue
            assert isinstance(of, MaskedCategorical)
            log_choice = of.logits.movedim(-1, 0)
            legal = (of.logits.detach() > torch.finfo(of.logits.dtype).min / 2).sum(-1)
            target = ENTROPY_SHARE * legal.clamp(min=1).log()
            every = torch.arange(len(log_choice), device=self.device)
            values[part.name] = every.reshape(-1, *[1] * zero.dim()).expand_as(log_choice)
        return Expanded(values, log_choice, log_numbers, target)

    def soft_value(
        self, critics: Iterable[ComposedCritic], observation: TensorDictBase, expanded: Expanded
    ) -> Tensor:
        """Compute the soft value of the policy: the minimum of two critics plus both entropies, `[*B]`."""
        first, second = (critic(critic.embed(observation), expanded.values) for critic in critics)
        of_numbers, of_choice = (
            self.networks[name]().detach() for name in ("temperature", "choice_temperature")
        )
        value = first.minimum(second) - of_numbers * expanded.log_numbers - of_choice * expanded.log_choice
        return (expanded.log_choice.exp() * value).sum(0)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the critics, then the actor and the temperatures."""
        observation, target = samples["observation"], self.target(samples)
        both = []
        for critic in self._critics(self.networks):
            seen = critic.embed(observation)
            both.append(critic(seen, part_values(self.layout, samples["action"], seen)))
        first, second = both
        loss = self.mean((first - target).square() + (second - target).square(), samples)
        norm = self.optimizer_step("critics", loss)
        expanded = self.expand(self.networks["actor"](observation))
        actor_loss = -self.soft_value(self._critics(self.networks), observation, expanded).mean()
        policy = expanded.log_choice.exp().detach()
        of_choice = -(policy * expanded.log_choice.detach()).sum(0)
        of_numbers = -(policy * expanded.log_numbers.detach()).sum(0)
        temperature, choice_temperature = (
            self.networks[name]() for name in ("temperature", "choice_temperature")
        )
        norms = self.optimizer_steps(
            {
                "actor": actor_loss,
                "temperature": temperature * (of_numbers - self._number_target(observation)).mean(),
                "choice_temperature": choice_temperature * (of_choice - expanded.entropy_target).mean(),
            }
        )
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": first.detach().mean(),
            "entropy": (of_choice + of_numbers).mean(),
            "choice_entropy": of_choice.mean(),
            "temperature": temperature.detach(),
            "choice_temperature": choice_temperature.detach(),
            "gradient_norm": norm,
            "actor_gradient_norm": norms["actor"],
        }
        return metrics, (first.detach() - target).abs()

    @staticmethod
    def _critics(networks: nn.ModuleDict) -> list[ComposedCritic]:
        return [networks["critics"].get_submodule(name) for name in ("0", "1")]  # type: ignore[misc]

    def _number_target(self, observation: TensorDictBase) -> Tensor | float:
        """Return the target of the entropy of numbers; by default minus how many there are, `[*B]`."""
        if self.config.target_entropy is not None:
            return self.config.target_entropy
        total: Tensor | float = -float(self.dimensions)
        for part in self.layout.parts:
            assert self.deciders.graph is not None
            exists = part.exists(observation, self.deciders.graph)
            if part.kind == "number" and exists is not None:
                total = total - part.dim * exists.sum(-1)
        return total

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the soft temporal-difference target with the online actor and target critics, `[*B]`."""
        observation = samples["next_observation"]
        expanded = self.expand(self.networks["actor"](observation))
        next_value = self.soft_value(self._critics(self.targets), observation, expanded)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the negative log-likelihood of the stored action."""
        return {"actor": -self.networks["actor"](samples["observation"]).log_prob(samples["action"]).mean()}
