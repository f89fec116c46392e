"""Rainbow (https://arxiv.org/abs/1710.02298): C51, noisy and dueling layers, n-step returns, priorities."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy import OffPolicy, exploring
from edgewise.algorithms.off_policy_config import RainbowConfig
from edgewise.algorithms.risk import check_risk, tail_share
from edgewise.models.agents.categorical import CategoricalQNetwork, even_support
from edgewise.models.agents.quantile import even_levels
from edgewise.models.features import mask_illegal
from edgewise.objectives.categorical import cross_entropy, project_distribution
from edgewise.objectives.margin import large_margin
from edgewise.objectives.risk import tail_mean

SHOWN = 32
"""Number of quantiles of a return in recorded episodes."""


class Rainbow(OffPolicy[RainbowConfig]):
    """Categorical distributions of returns; acts by the highest mean, or by the highest CVaR.

    While exploring, the noisy layers use separate noise for every decider and step. Updates sample new noise
    for the online and for the target network. Without exploration there is no noise.

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = Rainbow(deciders_of(env, ValueConfig()), config=RainbowConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the network and the support of its distributions."""
        config = self.config
        check_risk(config, deciders)
        self.support = even_support(config.v_min, config.v_max, config.atoms).to(self.device)
        features = deciders.features("critic")
        network = CategoricalQNetwork(
            features,
            hidden=deciders.model.hidden,
            num_actions=1 if features.per_choice else deciders.num_choices,
            atoms=config.atoms,
            sigma=config.sigma,
        )
        return nn.ModuleDict({"network": network})

    def act(self, observation: TensorDictBase) -> Tensor:
        """Return the action whose return has the highest mean or CVaR, `[*D]`."""
        return self.scores(observation).argmax(-1)

    def scores(self, observation: TensorDictBase) -> Tensor:
        """Return the mean or the CVaR of the return of every action, `[*D, K]`."""
        logits = self.networks["network"](observation, "rows" if exploring() else "none")
        return self.values(logits, observation, tail_share(observation, self.config, self.deciders))

    def values(self, logits: Tensor, observation: TensorDictBase, share: Tensor | None = None) -> Tensor:
        """Return the mean, or the CVaR at `share [*D]`, of every choice, `[*D, K]`."""
        values = tail_mean(logits.softmax(-1), self.support, share)
        return mask_illegal(values, self.deciders.legal(observation))

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Minimise the cross-entropy to the projected target distribution."""
        logits = of_actions(self.networks["network"](samples["observation"]), samples["action"])
        log_probability = logits.log_softmax(-1)
        td_loss = cross_entropy(log_probability, self.target(samples))
        loss = self.mean(td_loss, samples)
        norm = self.optimizer_step("network", loss)
        value = self.mean_counted((log_probability.detach().exp() * self.support).sum(-1), samples)
        return {"loss": loss.detach(), "value": value, "gradient_norm": norm}, td_loss.detach()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the target distribution with double Q-learning, `[*D, atoms]`."""
        observation = samples["next_observation"]
        best = self.values(self.networks["network"](observation), observation).argmax(-1)
        probability = of_actions(self.targets["network"](observation), best).softmax(-1)
        return project_distribution(
            probability, self.support, reward=samples["reward"], discount=samples["discount"]
        )

    def return_quantiles(self, observation: TensorDictBase) -> Tensor:
        """Return quantiles of the return of the greedy action, `[*D, SHOWN]`."""
        logits = of_actions(self.networks["network"](observation, "none"), self.act(observation))
        cumulative = logits.softmax(-1).cumsum(-1)
        levels = even_levels(cumulative, SHOWN).expand(*cumulative.shape[:-1], SHOWN).contiguous()
        return self.support[torch.searchsorted(cumulative, levels).clamp(max=self.config.atoms - 1)]

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the large-margin loss of DQfD on the mean returns."""
        observation = samples["observation"]
        values = self.values(self.networks["network"](observation), observation)
        return {"network": self.mean_counted(large_margin(values, samples["action"]), samples)}


def of_actions(logits: Tensor, action: Tensor) -> Tensor:
    """Select the logits `[*D, atoms]` of the actions `[*D]` from `[*D, K, atoms]`."""
    index = action.unsqueeze(-1).unsqueeze(-1).expand(*action.shape, 1, logits.shape[-1])
    return logits.gather(-2, index).squeeze(-2)
