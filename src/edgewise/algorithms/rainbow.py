"""Rainbow (https://arxiv.org/abs/1710.02298): C51, noisy and dueling layers, n-step returns, priorities."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.off_policy import Metrics, OffPolicy, exploring
from edgewise.algorithms.off_policy_config import RainbowConfig
from edgewise.algorithms.risk import tail_share
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import num_choices
from edgewise.models.agents.categorical import CategoricalQNetwork, even_support
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.quantile import even_levels
from edgewise.models.config import EgoConfig
from edgewise.objectives.categorical import cross_entropy, project_distribution
from edgewise.objectives.margin import large_margin
from edgewise.objectives.risk import tail_mean

SHOWN = 32
"""Number of quantiles of a return in recorded episodes."""


class Rainbow(OffPolicy[RainbowConfig]):
    """Categorical distributions of returns; acts by the highest mean, or by the highest CVaR.

    While exploring, the noisy layers use separate noise for every agent and step. Updates sample new noise
    for the online and for the target network. Without exploration there is no noise.

    Example:
        >>> agent = Rainbow(EgoSpec(), env.actions, config=RainbowConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """Build the network and the support of its distributions."""
        config, self.units = self.config, model.units
        self.support = even_support(config.v_min, config.v_max, config.atoms).to(self.device)
        network = CategoricalQNetwork(
            spec, model, num_actions=num_choices(actions), atoms=config.atoms, sigma=config.sigma
        )
        return nn.ModuleDict({"network": network})

    def act(self, ego: TensorDictBase) -> Tensor:
        """Return the action whose return has the highest mean or CVaR, `[*B]`."""
        probability = self.networks["network"](ego, "rows" if exploring() else "none").softmax(-1)
        share = tail_share(ego, self.config, units=self.units)
        return tail_mean(probability, self.support, share).argmax(-1)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Minimise the cross-entropy to the projected target distribution."""
        rows = torch.arange(len(samples), device=self.device)
        logits = self.networks["network"](samples["ego"])[rows, samples["action"]]
        log_probability = logits.log_softmax(-1)
        td_loss = cross_entropy(log_probability, self.target(samples))
        loss = (samples["weight"] * td_loss).mean()
        norm = self.optimizer_step("network", loss)
        value = (log_probability.detach().exp() * self.support).sum(-1).mean()
        return {"loss": loss.detach(), "value": value, "gradient_norm": norm}, td_loss.detach()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the target distribution with double Q-learning, `[M, atoms]`."""
        ego = samples["next_ego"]
        best = tail_mean(self.networks["network"](ego).softmax(-1), self.support, None).argmax(-1)
        rows = torch.arange(len(samples), device=self.device)
        probability = self.targets["network"](ego)[rows, best].softmax(-1)
        return project_distribution(
            probability, self.support, reward=samples["reward"], discount=samples["discount"]
        )

    def return_quantiles(self, ego: TensorDictBase) -> Tensor:
        """Return quantiles of the return of the greedy action, `[M, SHOWN]`."""
        rows = torch.arange(len(ego["mask"]), device=self.device)
        cumulative = self.networks["network"](ego, "none")[rows, self.act(ego)].softmax(-1).cumsum(-1)
        levels = even_levels(cumulative, SHOWN).expand(len(cumulative), SHOWN).contiguous()
        return self.support[torch.searchsorted(cumulative, levels).clamp(max=self.config.atoms - 1)]

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the large-margin loss of DQfD on the mean returns."""
        values = tail_mean(self.networks["network"](samples["ego"]).softmax(-1), self.support, None)
        return {"network": large_margin(values, samples["action"]).mean()}
