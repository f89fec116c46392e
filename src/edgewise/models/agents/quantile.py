"""Implicit quantile networks (https://arxiv.org/abs/1806.06923): quantiles of returns at any level."""

from __future__ import annotations

import math

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.models.agents.gates import gated
from edgewise.models.agents.linear import FastLinear
from edgewise.models.agents.noisy import Noisiness, linear, noisy_forward
from edgewise.models.features import Features, legal_mean, mask_illegal


class CosineEmbedding(nn.Module):
    """Embedding of quantile levels: `relu(W cos(pi i level) + b)`, i from 0.

    Args:
        cosines: number of cosines.
        width: of the embedding.
    """

    frequencies: Tensor

    def __init__(self, cosines: int, width: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", math.pi * torch.arange(cosines).float(), persistent=False)
        self.mix = nn.Linear(cosines, width)

    def forward(self, levels: Tensor) -> Tensor:
        """Map levels `[*B, Q]` to `[*B, Q, width]`, or `[Q]` to `[Q, width]`."""
        return self.mix((levels.unsqueeze(-1) * self.frequencies).cos()).relu()


class QuantileQNetwork(nn.Module):
    """Quantiles of the return of every choice of every decider.

    Args:
        features: of the observation, for deciders or for their choices.
        hidden: width of the hidden layers.
        cosines: number of cosines that embed a level.
        num_actions: choices of a decider; not used if the features are those of choices.
        dueling: whether to use separate streams for the state and the advantages.
        sigma: initial noise of the last layers; None for plain layers.
    """

    def __init__(
        self,
        features: Features,
        *,
        hidden: int,
        cosines: int,
        num_actions: int = 1,
        dueling: bool = False,
        sigma: float | None = None,
    ) -> None:
        super().__init__()
        self.features = features
        self.levels = CosineEmbedding(cosines, features.width)
        self.first = nn.Linear(features.width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.choices = linear(hidden, 1 if features.per_choice else num_actions, sigma=sigma)
        self.state = linear(hidden, 1, sigma=sigma) if dueling else None

    def forward(self, observation: TensorDictBase, levels: Tensor, noise: Noisiness = "none") -> Tensor:
        """Return quantiles `[*D, Q, K]` at levels `[*D, Q]`, or `[Q]` shared by all rows.

        Those of illegal choices are `ILLEGAL`.
        """
        return self._outputs(observation, self._hidden(observation, levels), noise)

    def means(self, observation: TensorDictBase, levels: Tensor, noise: Noisiness = "none") -> Tensor:
        """Return the means of the quantiles over the levels, `[*D, K]`; noise is shared by all rows.

        The last layers are linear, so they are applied to the mean of their inputs.
        """
        assert noise != "rows"
        hidden = self._hidden(observation, levels).mean(-2, keepdim=True)
        return self._outputs(observation, hidden, noise).squeeze(-2)

    def of_actions(
        self, observation: TensorDictBase, action: Tensor, levels: Tensor, noise: Noisiness = "none"
    ) -> Tensor:
        """Return quantiles `[*D, Q]` of legal actions `[*D]`, the same as those in `forward`.

        Other choices are left out where they have no effect, which is up to K times faster.
        """
        last, by_choice = self.choices, self.features.per_choice
        if self.state is not None or not (by_choice or isinstance(last, nn.Linear)):
            return gather_choice(self(observation, levels, noise), action)
        if isinstance(last, nn.Linear) and not by_choice:
            weight = functional.embedding(action, last.weight).unsqueeze(-2)
            bias = functional.embedding(action, last.bias.unsqueeze(-1))
            return (self._hidden(observation, levels) * weight).sum(-1) + bias
        features = self.features(observation)
        index = action[..., None, None].expand(*action.shape, 1, features.shape[-1])
        gate = self.levels(levels)
        chosen = gated(self.first, features.gather(-2, index).squeeze(-2), gate=gate)
        return noisy_forward(self.choices, self.second(chosen.relu()).relu(), noise).squeeze(-1)

    def _hidden(self, observation: TensorDictBase, levels: Tensor) -> Tensor:
        """Return the last hidden layer, `[*D, Q, hidden]`, or `[*D, K, Q, hidden]` for each choice."""
        gate = self.levels(levels)
        if self.features.per_choice and gate.dim() > 2:
            gate = gate.unsqueeze(-3)
        return self.second(gated(self.first, self.features(observation), gate=gate).relu()).relu()

    def _outputs(self, observation: TensorDictBase, h: Tensor, noise: Noisiness) -> Tensor:
        """Return quantiles `[*D, Q, K]` from the last hidden layer."""
        legal = self.features.legal(observation)
        choices = noisy_forward(self.choices, h, noise)
        if self.features.per_choice:
            choices = choices.squeeze(-1).transpose(-1, -2)
        if self.state is not None:
            by_level = None if legal is None else legal.unsqueeze(-2).expand_as(choices)
            if self.features.per_choice:
                h = legal_mean(h.transpose(-2, -3), by_level, dim=-2).squeeze(-2)
            advantage = choices - legal_mean(choices, by_level, dim=-1)
            choices = noisy_forward(self.state, h, noise) + advantage
        return mask_illegal(choices, legal)


def gather_choice(quantiles: Tensor, action: Tensor) -> Tensor:
    """Select the quantiles `[*D, Q]` of actions `[*D]` from those of all choices `[*D, Q, K]`."""
    index = action[..., None, None].expand(*quantiles.shape[:-1], 1)
    return quantiles.gather(-1, index).squeeze(-1)


class QuantileCritic(nn.Module):
    """Quantiles of the return of a continuous action.

    Args:
        features: of the observation.
        hidden: width of the hidden layers.
        cosines: number of cosines that embed a level.
        dim: dimensions of an action.
    """

    def __init__(self, features: Features, *, hidden: int, cosines: int, dim: int) -> None:
        super().__init__()
        self.observed = features
        self.levels = CosineEmbedding(cosines, features.width)
        self.first = nn.Linear(features.width, hidden)
        self.action = FastLinear(dim, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, 1)

    def forward(self, observation: TensorDictBase, action: Tensor, levels: Tensor) -> Tensor:
        """Return quantiles `[*D, Q]` of actions `[*D, dim]` at levels `[*D, Q]`, or `[Q]` for all rows."""
        return self.from_features(self.features(observation, levels), action)

    def features(self, observation: TensorDictBase, levels: Tensor) -> Tensor:
        """Return features of observation and levels, `[*D, Q, hidden]`, which do not depend on actions."""
        return gated(self.first, self.observed(observation), gate=self.levels(levels)).relu()

    def from_features(self, features: Tensor, action: Tensor) -> Tensor:
        """Return quantiles `[*D, Q]` of actions `[*D, dim]` from the result of `features`."""
        h = features * self.action(action).relu().unsqueeze(-2)
        return self.value(self.second(h).relu()).squeeze(-1)


def random_levels(like: Tensor, count: int) -> Tensor:
    """Sample quantile levels stratified over [0, 1), one in each of `count` equal parts, `[count]`.

    They cover [0, 1) more evenly than independent levels, with the same expectation of every sum. All rows of
    a batch share them, which saves a quarter of the work. `like` gives dtype and device.
    """
    part = torch.arange(count, dtype=like.dtype, device=like.device)
    return (part + torch.rand_like(part)) / count


def even_levels(like: Tensor, count: int) -> Tensor:
    """Return the midpoints of `count` equal parts of [0, 1], `[count]`; `like` gives dtype and device."""
    return (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) / count
