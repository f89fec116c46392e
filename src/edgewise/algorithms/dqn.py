"""Deep Q-learning (https://arxiv.org/abs/1312.5602) with double Q-targets (https://arxiv.org/abs/1509.06461)."""

from __future__ import annotations

from typing import cast

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.algorithms.algorithm import Metrics
from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy import OffPolicy, exploring
from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.models.agents.networks import QNetwork
from edgewise.objectives.margin import large_margin
from edgewise.objectives.path_target import path_target
from edgewise.objectives.temporal_difference import double_q_value, gather_actions, td_target


class DQN(OffPolicy[DQNConfig]):
    """Deep Q-network with ε-greedy exploration; all deciders share one network.

    With `mixing`, the values of all deciders of a world are mixed into one, which learns from the reward of
    the team (VDN, QMIX). The mixers are monotone, so that every decider still takes its own best choice.

    Example:
        >>> from edgewise.algorithms.deciders import deciders_of
        >>> agent = DQN(deciders_of(env, ValueConfig()), config=DQNConfig())
        >>> metrics = agent.learn(Rollout(env, agent.policy, rollout_length=16).collect())
    """

    networks: nn.ModuleDict
    targets: nn.ModuleDict

    def build(self, deciders: Deciders) -> nn.Module:
        """Build the Q-network."""
        features = deciders.features("critic")
        network = QNetwork(
            features,
            hidden=deciders.model.hidden,
            num_actions=1 if features.per_choice else deciders.num_choices,
            dueling=self.config.dueling,
            sigma=0.5 if self.config.noisy else None,
            mixer=deciders.mixer(),
        )
        return nn.ModuleDict({"network": network})

    def act(self, observation: TensorDictBase) -> Tensor:
        """Return the greedy action, `[*D]`."""
        return self.scores(observation).argmax(-1)

    def scores(self, observation: TensorDictBase) -> Tensor:
        """Return the action values, `[*D, K]`."""
        return self.networks["network"](observation, "rows" if exploring() else "none")

    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Minimise the Huber loss of the temporal-difference error."""
        network, observation = cast(QNetwork, self.networks["network"]), samples["observation"]
        value = gather_actions(network(observation, "shared"), samples["action"])
        value = network.joint(value, observation)
        target = self.target(samples)
        td_loss = functional.huber_loss(value, target, reduction="none", delta=self.config.huber_delta)
        loss = self.mean(td_loss, samples)
        norm = self.optimizer_step("network", loss)
        metrics = {
            "loss": loss.detach(),
            "value": self.mean_counted(value.detach(), samples),
            "gradient_norm": norm,
        }
        return metrics, (value.detach() - target).abs()

    @torch.no_grad()
    def target(self, samples: TensorDictBase) -> Tensor:
        """Compute the temporal-difference target, `[*D]`; with `retrace`, that of Retrace(λ)."""
        observation = samples["next_observation"]
        target, online = self._both_values(observation)
        next_value = self._joint(double_q_value(target, online), observation)
        if self.config.retrace is None:
            return td_target(samples["reward"], samples["discount"], next_value=next_value)
        path = samples["path"].reshape(-1)
        observation, action = path["observation"], path["action"]
        target, online = self._both_values(observation)
        followed, counted = online.argmax(-1) == action, self.deciders.counted(observation)
        if self.deciders.mixing != "none":
            followed = (followed if counted is None else followed | ~counted).all(-1)
            counted = None
        return path_target(
            samples,
            next_value=next_value,
            path_value=self._joint(gather_actions(target, action), observation),
            path_best=self._joint(double_q_value(target, online), observation),
            followed=followed,
            active=counted,
            gamma=self.config.gamma,
            lmbda=self.config.retrace,
        )

    def _both_values(self, observation: TensorDictBase) -> tuple[Tensor, Tensor]:
        """Return the values of the target network, and those that choose, `[*D, K]`."""
        target = self.targets["network"](observation, "shared")
        return target, self.networks["network"](observation, "shared") if self.config.double else target

    def _joint(self, values: Tensor, observation: TensorDictBase) -> Tensor:
        return cast(QNetwork, self.targets["network"]).joint(values, observation)

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute the large-margin loss of DQfD."""
        values = self.networks["network"](samples["observation"])
        return {"network": self.mean_counted(large_margin(values, samples["action"]), samples)}
