"""Values as distributions, any quantile of which can be asked for (https://arxiv.org/abs/1806.06923)."""

from __future__ import annotations

import math

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.models.agents.ego import EgoSpec, make_ego_encoder
from edgewise.models.config import EgoConfig


class CosineEmbedding(nn.Module):
    """A quantile's level as features: `relu(W cos(pi i level) + b)`, i from 0.

    Args:
        cosines: how many.
        width: of the features.
    """

    frequencies: Tensor

    def __init__(self, cosines: int, width: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", math.pi * torch.arange(cosines).float(), persistent=False)
        self.mix = nn.Linear(cosines, width)

    def forward(self, levels: Tensor) -> Tensor:
        """`[*B, Q, width]` from levels `[*B, Q]`, or `[Q, width]` from `[Q]`."""
        return self.mix((levels.unsqueeze(-1) * self.frequencies).cos()).relu()


class QuantileValues(nn.Module):
    """Quantiles of the return of every choice.

    Args:
        spec: how much is seen.
        config: see `EgoConfig`.
        num_actions: choices.
    """

    def __init__(self, spec: EgoSpec, config: EgoConfig, *, num_actions: int) -> None:
        super().__init__()
        width = config.hidden
        self.encoder = make_ego_encoder(spec, config)
        self.levels = CosineEmbedding(config.cosines, self.encoder.width)
        self.first = nn.Linear(self.encoder.width, width)
        self.second = nn.Linear(width, width)
        self.choices = nn.Linear(width, num_actions)

    def forward(self, ego: TensorDictBase, levels: Tensor) -> Tensor:
        """`[*B, Q, num_actions]` at levels `[*B, Q]`, or `[Q]` for the same in every row."""
        h = gated(self.first, self.encoder(ego), gate=self.levels(levels)).relu()
        return self.choices(self.second(h).relu())


class QuantileCritic(nn.Module):
    """Quantiles of the return of a continuous action.

    Args:
        spec: how much is seen.
        config: see `EgoConfig`.
        dim: dimensions of an action.
    """

    def __init__(self, spec: EgoSpec, config: EgoConfig, *, dim: int) -> None:
        super().__init__()
        width = config.hidden
        self.encoder = make_ego_encoder(spec, config)
        self.levels = CosineEmbedding(config.cosines, self.encoder.width)
        self.first = nn.Linear(self.encoder.width, width)
        self.action = nn.Linear(dim, width)
        self.second = nn.Linear(width, width)
        self.value = nn.Linear(width, 1)

    def forward(self, ego: TensorDictBase, action: Tensor, levels: Tensor) -> Tensor:
        """`[*B, Q]` of actions `[*B, dim]` at levels `[*B, Q]`, or `[Q]` for the same in every row."""
        return self.of(self.features(ego, levels), action)

    def features(self, ego: TensorDictBase, levels: Tensor) -> Tensor:
        """What the action is then weighed against, `[*B, Q, hidden]`: most of the work."""
        return gated(self.first, self.encoder(ego), gate=self.levels(levels)).relu()

    def of(self, features: Tensor, action: Tensor) -> Tensor:
        """Quantiles `[*B, Q]` of actions `[*B, dim]`, from the features."""
        h = features * self.action(action).relu().unsqueeze(-2)
        return self.value(self.second(h).relu()).squeeze(-1)


def gated(layer: nn.Linear, h: Tensor, *, gate: Tensor) -> Tensor:
    """`layer(h * gate)` for every quantile, `[*B, Q, outputs]`.

    Args:
        layer: of `C` inputs.
        h: features `[*B, C]`.
        gate: `[*B, Q, C]`, or `[Q, C]` for the same in every row. Then the gates move to the weights, and the
            product of features and gates, Q times as large as the features, is never made.
    """
    if gate.dim() > 2:
        return layer(h.unsqueeze(-2) * gate)
    weight = (layer.weight * gate.unsqueeze(1)).flatten(0, 1)
    return functional.linear(h, weight).unflatten(-1, (len(gate), -1)) + layer.bias


def random_levels(like: Tensor, count: int) -> Tensor:
    """One level from each of `count` equal parts of [0, 1), drawn evenly, `[count]`, of the kind of `like`.

    Together they cover [0, 1) more evenly than as many free draws, at the same expectation of every sum over
    them; all rows of a batch share them, which saves a quarter of the work.
    """
    part = torch.arange(count, dtype=like.dtype, device=like.device)
    return (part + torch.rand_like(part)) / count


def even_levels(like: Tensor, count: int) -> Tensor:
    """The middles of `count` equal parts of [0, 1], `[count]`, of the kind of `like`."""
    return (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) / count
