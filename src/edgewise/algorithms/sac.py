"""Soft actor-critic (https://arxiv.org/abs/1812.05905): twin critics, a temperature that tunes itself."""

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
from edgewise.objectives.temporal_difference import bootstrapped

LOG_SCALE = (-20.0, 2.0)
"""Within which the log of an action's deviation, before squashing, is kept."""


class Temperature(nn.Module):
    """The weight of entropy, learnt as its logarithm.

    Args:
        start: the weight at first.
    """

    def __init__(self, start: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(start)))

    def forward(self) -> Tensor:
        """The weight, 0-d."""
        return self.log.exp()


class TwinCritics(nn.Module):
    """Two critics that begin apart; a loop of two is faster than one pass over stacked weights.

    Args:
        spec: how much is seen.
        model: see `EgoConfig`.
        dim: dimensions of an action.
    """

    def __init__(self, spec: EgoSpec, model: EgoConfig, *, dim: int) -> None:
        super().__init__()
        self.first, self.second = (EgoCritic(spec, model, dim=dim) for _ in range(2))

    def forward(self, ego: TensorDictBase, action: Tensor) -> tuple[Tensor, Tensor]:
        """Two values, each `[*B]`."""
        return self.first(ego, action), self.second(ego, action)


class SAC(OffPolicy[SACConfig]):
    """A stochastic actor that climbs the lesser of two critics and keeps some entropy.

    It draws while it explores, and takes the squashed mean where it does not.

    Example:
        >>> agent = SAC(EgoSpec(), env.actions, config=SACConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, steps=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Actor, two critics, and the temperature."""
        self.box = ActionBox.of(actions)
        parts = {
            "actor": EgoActor(spec, model, outputs=2 * self.box.dim),
            "critics": TwinCritics(spec, model, dim=self.box.dim),
            "temperature": Temperature(self.config.initial_temperature),
        }
        return nn.ModuleDict(parts)

    @property
    def wanted_entropy(self) -> float:
        """What the temperature holds the entropy of an action at."""
        wanted = self.config.wanted_entropy
        return -float(self.box.dim) if wanted is None else wanted

    def act(self, ego: TensorDictBase) -> Tensor:
        """A draw where it explores, else the most typical action."""
        distribution = self.distribution(ego)
        return self.box.outward(distribution.sample() if exploring() else distribution.mode)

    def distribution(self, ego: TensorDictBase) -> ArctanNormal:
        """Of actions, as networks see them."""
        loc, log_scale = self.networks["actor"](ego).chunk(2, -1)
        return ArctanNormal(loc, log_scale.clamp(*LOG_SCALE))

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step of both critics, then one of the actor, then one of the temperature."""
        action, ego, target = self.box.inward(samples["action"]), samples["ego"], self.target(samples)
        first, second = self.networks["critics"](ego, action)
        loss = (samples["weight"] * ((first - target).square() + (second - target).square())).mean()
        norm = self.descend("critics", loss)
        actor_loss, log_prob = self.actor_loss(ego)
        actor_norm = self.descend("actor", actor_loss)
        temperature = self.networks["temperature"]()
        self.descend("temperature", temperature_loss(temperature, log_prob, wanted=self.wanted_entropy))
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
        """Minus the soft value of fresh actions, 0-d, and their log-probabilities `[M]` without gradient."""
        action, log_prob = self.distribution(ego).rsample_and_log_prob()
        first, second = self.networks["critics"](ego, action)
        temperature = self.networks["temperature"]().detach()
        value = soft_value(first, second, log_prob=log_prob, temperature=temperature)
        return -value.mean(), log_prob.detach()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """What the values should have been, `[M]`; the actor as it is now acts, and the targets value it."""
        ego = samples["next_ego"]
        action, log_prob = self.distribution(ego).rsample_and_log_prob()
        first, second = self.targets["critics"](ego, action)
        temperature = self.networks["temperature"]()
        following = soft_value(first, second, log_prob=log_prob, temperature=temperature)
        return bootstrapped(samples["reward"], samples["discount"], following=following)

    def imitation(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """The squared distance of the actor's most typical action to what was done."""
        action = self.distribution(samples["ego"]).mode
        return {"actor": functional.mse_loss(action, self.box.inward(samples["action"]))}
