"""Values as distributions over a fixed set of returns, with noisy and dueling layers: Rainbow's network."""

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
"""No noise, the same for all rows of a batch, or each row's own."""


class CategoricalValues(nn.Module):
    """The probability of each return, as logits, for every choice.

    Two streams of three noisy layers, one for the state and one for the choices, whose logits add up
    (https://arxiv.org/abs/1710.02298).

    Args:
        spec: how much is seen.
        config: see `EgoConfig`.
        num_actions: choices.
        atoms: returns that are told apart.
        sigma: initial size of the noise.
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
        """Logits of returns, `[*B, num_actions, atoms]`."""
        h = self.encoder(ego)
        choices = self.choices(h, noise).unflatten(-1, (self.num_actions, self.atoms))
        return self.state(h, noise).unsqueeze(-2) + choices - choices.mean(-2, keepdim=True)


class NoisyStream(nn.Module):
    """Noisy layers one after another.

    Args:
        widths: of the input and of every layer.
        sigma: initial size of the noise.
    """

    def __init__(self, widths: tuple[int, ...], *, sigma: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(NoisyLinear(*pair, sigma=sigma) for pair in pairwise(widths))

    def forward(self, h: Tensor, noise: Noisiness) -> Tensor:
        """`[*B, widths[-1]]`."""
        for number, layer in enumerate(self.layers):
            h = h.relu() if number else h
            assert isinstance(layer, NoisyLinear)
            h = layer(h, None if noise == "none" else layer.draw(h, shared=noise == "shared"))
        return h


def even_support(lowest: float, highest: float, atoms: int) -> Tensor:
    """The returns that are told apart, evenly from the lowest to the highest, `[atoms]`."""
    return torch.linspace(lowest, highest, atoms)
