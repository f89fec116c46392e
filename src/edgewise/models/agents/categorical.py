"""The network of Rainbow: categorical distributions of returns (C51) with noisy, dueling layers."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.models.agents.ego import EgoSpec, make_ego_encoder
from edgewise.models.agents.noisy import NoisyLinear
from edgewise.models.config import EgoConfig

Noisiness = Literal["none", "shared", "rows"]
"""No noise, noise shared by all rows of a batch, or separate noise for each row."""


class CategoricalQNetwork(nn.Module):
    """Logits of a categorical distribution of the return of every action.

    It has two streams of three noisy layers, for the state value and for the advantages; their logits are
    added (https://arxiv.org/abs/1710.02298).

    Args:
        spec: sizes of the observation.
        config: see `EgoConfig`.
        num_actions: number of actions.
        atoms: number of atoms of the support.
        sigma: initial scale of the noise.
    """

    def __init__(
        self, spec: EgoSpec, config: EgoConfig, *, num_actions: int, atoms: int = 51, sigma: float = 0.5
    ) -> None:
        super().__init__()
        self.num_actions, self.atoms = num_actions, atoms
        self.encoder = make_ego_encoder(spec, config)
        widths = (self.encoder.width, config.hidden, config.hidden)
        self.state = NoisyStream((*widths, atoms), sigma=sigma)
        self.choices = NoisyStream((*widths, num_actions * atoms), sigma=sigma)

    def forward(self, ego: TensorDictBase, noise: Noisiness = "shared") -> Tensor:
        """Return logits of the atoms, `[*B, num_actions, atoms]`."""
        h = self.encoder(ego)
        choices = self.choices(h, noise).unflatten(-1, (self.num_actions, self.atoms))
        return self.state(h, noise).unsqueeze(-2) + choices - choices.mean(-2, keepdim=True)


class NoisyStream(nn.Module):
    """An MLP of noisy layers.

    Args:
        widths: of the input and of every layer.
        sigma: initial scale of the noise.
    """

    def __init__(self, widths: tuple[int, ...], *, sigma: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(NoisyLinear(*pair, sigma=sigma) for pair in pairwise(widths))

    def forward(self, h: Tensor, noise: Noisiness) -> Tensor:
        """Map `[*B, widths[0]]` to `[*B, widths[-1]]`."""
        for number, layer in enumerate(self.layers):
            h = h.relu() if number else h
            assert isinstance(layer, NoisyLinear)
            h = layer(h, None if noise == "none" else layer.sample_noise(h, shared=noise == "shared"))
        return h


def even_support(v_min: float, v_max: float, atoms: int) -> Tensor:
    """Return the support of C51: evenly spaced atoms from `v_min` to `v_max`, `[atoms]`."""
    return torch.linspace(v_min, v_max, atoms)
