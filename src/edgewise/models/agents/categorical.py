"""The network of Rainbow: categorical distributions of returns (C51) with noisy, dueling layers."""

from __future__ import annotations

from itertools import pairwise

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.models.agents.noisy import Noisiness, NoisyLinear, noisy_forward
from edgewise.models.features import Features, legal_mean


class CategoricalQNetwork(nn.Module):
    """Logits of a categorical distribution of the return of every choice.

    It has two streams of three noisy layers, for the state value and for the advantages; their logits are
    added (https://arxiv.org/abs/1710.02298).

    Args:
        features: of the observation, for deciders or for their choices.
        hidden: width of the hidden layers.
        num_actions: choices of a decider; not used if the features are those of choices.
        atoms: number of atoms of the support.
        sigma: initial scale of the noise.
    """

    def __init__(
        self, features: Features, *, hidden: int, num_actions: int = 1, atoms: int = 51, sigma: float = 0.5
    ) -> None:
        super().__init__()
        self.features, self.atoms = features, atoms
        self.num_actions = 1 if features.per_choice else num_actions
        widths = (features.width, hidden, hidden)
        self.state = NoisyStream((*widths, atoms), sigma=sigma)
        self.choices = NoisyStream((*widths, self.num_actions * atoms), sigma=sigma)

    def forward(self, observation: TensorDictBase, noise: Noisiness = "shared") -> Tensor:
        """Return logits of the atoms, `[*D, K, atoms]`."""
        h = self.features(observation)
        choices = self.choices(h, noise)
        if not self.features.per_choice:
            choices = choices.unflatten(-1, (self.num_actions, self.atoms))
            return self.state(h, noise).unsqueeze(-2) + choices - choices.mean(-2, keepdim=True)
        legal = self.features.legal(observation)
        pooled = legal_mean(h, legal, dim=-2)
        return self.state(pooled, noise) + choices - legal_mean(choices, legal, dim=-2)


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
            h = noisy_forward(layer, h.relu() if number else h, noise)
        return h


def even_support(v_min: float, v_max: float, atoms: int) -> Tensor:
    """Return the support of C51: evenly spaced atoms from `v_min` to `v_max`, `[atoms]`."""
    return torch.linspace(v_min, v_max, atoms)
