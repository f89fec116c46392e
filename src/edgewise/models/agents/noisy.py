"""Noisy linear layers (https://arxiv.org/abs/1706.10295): exploration by learnt parameter noise."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

Noise = tuple[Tensor, Tensor]
"""Noise factors of the inputs and of the outputs."""
Noisiness = Literal["none", "shared", "rows"]
"""No noise, noise shared by all rows of a batch, or separate noise for each row."""


class NoisyLinear(nn.Module):
    """A linear layer with factorised Gaussian noise on weights and biases.

    With the noise factors `p` of inputs and `q` of outputs, the output is `W x + b + q * (S (p * x) + s)`.
    Each row of a batch may have its own noise, without building a noisy matrix per row, so that agents
    explore independently. Noise that all rows share needs half the work, and is used for learning.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        sigma: initial scale of the noise; it is divided by the square root of `inputs`.

    Example:
        >>> layer, x = NoisyLinear(3, 2), torch.zeros(4, 3)
        >>> layer(x, layer.sample_noise(x, shared=False)).shape
        torch.Size([4, 2])
    """

    def __init__(self, inputs: int, outputs: int, *, sigma: float = 0.5) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), sigma * bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma * bound))

    def forward(self, x: Tensor, noise: Noise | None = None) -> Tensor:
        """Map `[*B, inputs]` to `[*B, outputs]`; without noise, with the mean weights.

        Args:
            x: the input.
            noise: `[*B, inputs]` and `[*B, outputs]`, or `[inputs]` and `[outputs]` shared by all rows.
        """
        if noise is None:
            return functional.linear(x, self.weight, self.bias)
        of_inputs, of_outputs = noise
        if of_inputs.dim() == 1:
            weight = torch.addcmul(self.weight, self.weight_sigma * of_inputs, of_outputs.unsqueeze(-1))
            return functional.linear(x, weight, torch.addcmul(self.bias, self.bias_sigma, of_outputs))
        mean = functional.linear(x, self.weight, self.bias)
        return mean + of_outputs * functional.linear(x * of_inputs, self.weight_sigma, self.bias_sigma)

    def sample_noise(self, x: Tensor, *, shared: bool) -> Noise:
        """Sample noise for every row of `x [*B, inputs]`, or one noise shared by all rows."""
        outputs, inputs = self.weight.shape
        lead = () if shared else x.shape[:-1]
        normal = torch.randn((*lead, inputs + outputs), device=x.device, dtype=x.dtype)
        factors = normal.sign() * normal.abs().sqrt()
        return factors[..., :inputs], factors[..., inputs:]


def linear(inputs: int, outputs: int, *, sigma: float | None) -> nn.Module:
    """Build a noisy layer, or a plain one if `sigma` is None."""
    return nn.Linear(inputs, outputs) if sigma is None else NoisyLinear(inputs, outputs, sigma=sigma)


def noisy_forward(layer: nn.Module, x: Tensor, noise: Noisiness) -> Tensor:
    """Apply a layer of `linear`; a plain one has no noise."""
    if not isinstance(layer, NoisyLinear) or noise == "none":
        return layer(x)
    return layer(x, layer.sample_noise(x, shared=noise == "shared"))
