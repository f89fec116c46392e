"""Soft actor-critic for discrete actions (https://arxiv.org/abs/1910.07207), with exact expectations."""

from __future__ import annotations

import math

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy import OffPolicy, exploring
from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.models.agents.networks import PolicyNetwork, QNetwork
from edgewise.models.agents.temperature import Temperature
from edgewise.models.distributions.masked import gumbel_argmax
from edgewise.models.features import mask_illegal
from edgewise.objectives.temporal_difference import gather_actions, td_target

ENTROPY_SHARE = 0.3
"""Default target of the entropy, as a share of that of a uniform choice between all legal ones."""


class TwinQNetworks(nn.Module):
    """Two Q-networks with separate weights.

    Args:
        deciders: who decides, on what they observe.
        dueling: whether they have separate value and advantage streams.
    """

    def __init__(self, deciders: Deciders, *, dueling: bool) -> None:
        super().__init__()
        self.first, self.second = (_q_network(deciders, dueling=dueling) for _ in range(2))

    def forward(self, observation: TensorDictBase) -> tuple[Tensor, Tensor]:
        """Return the values of both networks, each `[*D, K]`."""
        return self.first(observation), self.second(observation)


def _q_network(deciders: Deciders, *, dueling: bool) -> QNetwork:
    features = deciders.features("critic")
    count = 1 if features.per_choice else deciders.num_choices
    return QNetwork(features, hidden=deciders.model.hidden, num_actions=count, dueling=dueling)


class DiscreteSAC(OffPolicy[SACConfig]):
    """A stochastic actor over choices, trained on the minimum of two critics plus an entropy bonus.

    Expectations over the policy are sums over all legal choices, so nothing is sampled in an update. It
    samples actions while exploring and takes the most probable one otherwise.

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = DiscreteSAC(deciders_of(env, ValueConfig()), config=SACConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the actor, the twin critics and the temperature."""
        features = deciders.features("actor")
        count = 1 if features.per_choice else deciders.num_choices
        parts = {
            "actor": PolicyNetwork(features, hidden=deciders.model.hidden, outputs=count),
            "critics": TwinQNetworks(deciders, dueling=self.config.dueling),
            "temperature": Temperature(self.config.initial_temperature),
        }
        return nn.ModuleDict(parts)

    def act(self, observation: TensorDictBase) -> Tensor:
        """Sample an action while exploring, else return the most probable one, `[*D]`."""
        logits = self.scores(observation)
        return gumbel_argmax(logits) if exploring() else logits.argmax(-1)

    def scores(self, observation: TensorDictBase) -> Tensor:
        """Return the logits of all choices, `[*D, K]`."""
        return mask_illegal(self.networks["actor"](observation), self.deciders.legal(observation))

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Update the critics, then the actor and the temperature."""
        target, observation = self.target(samples), samples["observation"]
        both = self.networks["critics"](observation)
        first, second = (gather_actions(values, samples["action"]) for values in both)
        loss = self.mean((first - target).square() + (second - target).square(), samples)
        norm = self.optimizer_step("critics", loss)
        log_policy = self.scores(observation).log_softmax(-1)
        temperature = self.networks["temperature"]()
        values = both[0].detach().minimum(both[1].detach())
        policy = log_policy.exp()
        gain = (policy * (values - temperature.detach() * log_policy)).sum(-1)
        actor_loss = -self.mean_counted(gain, samples)
        entropy = -(policy * log_policy).sum(-1).detach()
        gap = self.mean_counted(entropy - self.target_entropy(observation), samples)
        norms = self.optimizer_steps({"actor": actor_loss, "temperature": temperature * gap})
        metrics = {
            "loss": loss.detach(),
            "actor_loss": actor_loss.detach(),
            "value": self.mean_counted(first.detach(), samples),
            "entropy": self.mean_counted(entropy, samples),
            "temperature": temperature.detach(),
            "gradient_norm": norm,
            "actor_gradient_norm": norms["actor"],
        }
        return metrics, (first.detach() - target).abs()

    def target_entropy(self, observation: TensorDictBase) -> Tensor | float:
        """Return the target of the entropy; by default in proportion to that of a uniform choice, `[*D]`."""
        if self.config.target_entropy is not None:
            return self.config.target_entropy
        legal = self.deciders.legal(observation)
        if legal is None:
            return ENTROPY_SHARE * math.log(self.deciders.num_choices)
        return ENTROPY_SHARE * legal.sum(-1).clamp(min=1).log()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the soft temporal-difference target with the online actor and target critics, `[*D]`."""
        observation = samples["next_observation"]
        log_policy = self.scores(observation).log_softmax(-1)
        first, second = self.targets["critics"](observation)
        soft = first.minimum(second) - self.networks["temperature"]() * log_policy
        next_value = (log_policy.exp() * soft).sum(-1)
        return td_target(samples["reward"], samples["discount"], next_value=next_value)

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the cross-entropy of the policy to the stored action."""
        log_policy = self.scores(samples["observation"]).log_softmax(-1)
        return {"actor": -self.mean_counted(gather_actions(log_policy, samples["action"]), samples)}
