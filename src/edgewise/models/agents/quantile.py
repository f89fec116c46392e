"""Implicit quantile networks (https://arxiv.org/abs/1806.06923): quantiles of returns at any level."""

from __future__ import annotations

import math

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.models.agents.ego import EgoSpec, make_ego_encoder
from edgewise.models.config import EgoConfig


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
    """Quantiles of the return of every discrete action.

    Args:
        spec: sizes of the observation.
        config: see `EgoConfig`.
        num_actions: number of actions.
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
        """Return quantiles `[*B, Q, num_actions]` at levels `[*B, Q]`, or `[Q]` shared by all rows."""
        h = gated(self.first, self.encoder(ego), gate=self.levels(levels)).relu()
        return self.choices(self.second(h).relu())


class QuantileCritic(nn.Module):
    """Quantiles of the return of a continuous action.

    Args:
        spec: sizes of the observation.
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
        """Return quantiles `[*B, Q]` of actions `[*B, dim]` at levels `[*B, Q]`, or `[Q]` for all rows."""
        return self.from_features(self.features(ego, levels), action)

    def features(self, ego: TensorDictBase, levels: Tensor) -> Tensor:
        """Return features of observation and levels, `[*B, Q, hidden]`, which do not depend on actions."""
        return gated(self.first, self.encoder(ego), gate=self.levels(levels)).relu()

    def from_features(self, features: Tensor, action: Tensor) -> Tensor:
        """Return quantiles `[*B, Q]` of actions `[*B, dim]` from the result of `features`."""
        h = features * self.action(action).relu().unsqueeze(-2)
        return self.value(self.second(h).relu()).squeeze(-1)


def gated(layer: nn.Linear, h: Tensor, *, gate: Tensor) -> Tensor:
    """Compute `layer(h * gate)` for every quantile, `[*B, Q, outputs]`.

    Args:
        layer: of `C` inputs.
        h: features `[*B, C]`.
        gate: `[*B, Q, C]`, or `[Q, C]` shared by all rows. Shared gates multiply the weights instead, which
            avoids the product of features and gates, Q times as large as the features.
    """
    if gate.dim() > 2:
        return layer(h.unsqueeze(-2) * gate)
    weight = (layer.weight * gate.unsqueeze(1)).flatten(0, 1)
    return functional.linear(h, weight).unflatten(-1, (len(gate), -1)) + layer.bias


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
