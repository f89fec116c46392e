"""Rainbow (https://arxiv.org/abs/1710.02298): whole distributions of returns, noisy, dueling, prioritised."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.off_policy import Metrics, OffPolicy, exploring
from edgewise.algorithms.off_policy_config import RainbowConfig
from edgewise.graphs.actions import ActionLayout
from edgewise.models.agents.actions import num_choices
from edgewise.models.agents.categorical import CategoricalValues, even_support
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.agents.quantile import even_levels
from edgewise.models.config import EgoConfig
from edgewise.objectives.categorical import cross_entropy, project
from edgewise.objectives.margin import large_margin
from edgewise.objectives.risk import tail_mean, tail_share

SHOWN = 32
"""Quantiles of a return in a picture."""


class Rainbow(OffPolicy[RainbowConfig]):
    """Probabilities of a fixed set of returns for every choice; the best mean, or the best tail, is taken.

    Noise is drawn anew for every robot at every step, and in every update for both networks; without
    exploration there is none.

    Example:
        >>> agent = Rainbow(EgoSpec(), env.actions, config=RainbowConfig(), model=EgoConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, steps=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """One network."""
        config, self.metres = self.config, model.metres
        self.support = even_support(config.lowest, config.highest, config.atoms).to(self.device)
        network = CategoricalValues(
            spec, model, num_actions=num_choices(actions), atoms=config.atoms, sigma=config.sigma
        )
        return nn.ModuleDict({"network": network})

    def act(self, ego: TensorDictBase) -> Tensor:
        """The choice whose returns, or whose worst returns, have the highest mean."""
        probability = self.networks["network"](ego, "rows" if exploring() else "none").softmax(-1)
        share = tail_share(ego, self.config, metres=self.metres)
        return tail_mean(probability, self.support, share).argmax(-1)

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step on the cross-entropy to the projected target."""
        rows = torch.arange(len(samples), device=self.device)
        logits = self.networks["network"](samples["ego"])[rows, samples["action"]]
        log_probability = logits.log_softmax(-1)
        errors = cross_entropy(log_probability, self.target(samples))
        loss = (samples["weight"] * errors).mean()
        norm = self.descend("network", loss)
        value = (log_probability.detach().exp() * self.support).sum(-1).mean()
        return {"loss": loss.detach(), "value": value, "gradient_norm": norm}, errors.detach()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """The returns, by the target network, of what the online network likes best, `[M, atoms]`."""
        ego = samples["next_ego"]
        best = tail_mean(self.networks["network"](ego).softmax(-1), self.support, None).argmax(-1)
        rows = torch.arange(len(samples), device=self.device)
        following = self.targets["network"](ego)[rows, best].softmax(-1)
        return project(following, self.support, reward=samples["reward"], discount=samples["discount"])

    def returns(self, ego: TensorDictBase) -> Tensor:
        """Quantiles of the return of the choice that is taken, `[M, SHOWN]`."""
        rows = torch.arange(len(ego["mask"]), device=self.device)
        below = self.networks["network"](ego, "none")[rows, self.act(ego)].softmax(-1).cumsum(-1)
        levels = even_levels(below, SHOWN).expand(len(below), SHOWN).contiguous()
        return self.support[torch.searchsorted(below, levels).clamp(max=self.config.atoms - 1)]

    def imitation(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """The means of all other choices stay below that of the one taken."""
        values = tail_mean(self.networks["network"](samples["ego"]).softmax(-1), self.support, None)
        return {"network": large_margin(values, samples["action"]).mean()}
