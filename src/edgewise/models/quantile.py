"""Values as distributions, any quantile of which can be asked for (https://arxiv.org/abs/1806.06923)."""

from __future__ import annotations

import math

import torch
from tensordict import TensorDictBase
from torch import Generator, Tensor, nn

from edgewise.models.config import EgoConfig
from edgewise.models.ego import EgoSpec, make_ego_encoder


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
        """`[*B, Q, width]` from levels `[*B, Q]`."""
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
        self.hidden = nn.Sequential(
            nn.Linear(self.encoder.width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.choices = nn.Linear(width, num_actions)

    def forward(self, ego: TensorDictBase, levels: Tensor) -> Tensor:
        """`[*B, Q, num_actions]` at levels `[*B, Q]`."""
        return self.choices(self.hidden(self.encoder(ego).unsqueeze(-2) * self.levels(levels)))


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
        """`[*B, Q]` of actions `[*B, dim]` at levels `[*B, Q]`."""
        h = self.first(self.encoder(ego).unsqueeze(-2) * self.levels(levels)).relu()
        h = h * self.action(action).relu().unsqueeze(-2)
        return self.value(self.second(h).relu()).squeeze(-1)


def random_levels(like: Tensor, count: int, *, generator: Generator | None = None) -> Tensor:
    """Levels drawn evenly from [0, 1) for every row of `like [*B, width]`, `[*B, count]`."""
    return torch.rand((*like.shape[:-1], count), generator=generator, dtype=like.dtype, device=like.device)


def even_levels(like: Tensor, count: int) -> Tensor:
    """The same levels for every row of `like [*B, width]`: the middles of `count` equal parts of [0, 1]."""
    levels = (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) / count
    return levels.expand(*like.shape[:-1], count)
