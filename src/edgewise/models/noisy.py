"""A linear layer whose weights carry learnt noise: exploration that a network tunes by itself."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

Noise = tuple[Tensor, Tensor]
"""Of the inputs, and of the outputs."""


class NoisyLinear(nn.Module):
    """Factorised Gaussian noise on weights and biases (https://arxiv.org/abs/1706.10295).

    Every row of a batch gets noise of its own: with the factors `p` of inputs and `q` of outputs, a row is
    `W x + b + q * (S (p * x) + s)`, so that no noisy matrix is ever built, and worlds that act side by side
    explore apart.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        sigma: initial size of the noise, divided by the square root of `inputs`.
    """

    def __init__(self, inputs: int, outputs: int, *, sigma: float = 0.5) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), sigma * bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma * bound))

    def forward(self, x: Tensor, noise: Noise | None = None) -> Tensor:
        """`[*B, outputs]` from `[*B, inputs]`; without noise the mean of the weights decides."""
        mean = functional.linear(x, self.weight, self.bias)
        if noise is None:
            return mean
        of_inputs, of_outputs = noise
        return mean + of_outputs * functional.linear(x * of_inputs, self.weight_sigma, self.bias_sigma)

    def draw(self, x: Tensor, generator: Generator | None = None) -> Noise:
        """Fresh noise for every row of `x [*B, inputs]`."""
        outputs, inputs = self.weight.shape
        drawn = torch.randn(
            (*x.shape[:-1], inputs + outputs), generator=generator, device=x.device, dtype=x.dtype
        )
        shaped = drawn.sign() * drawn.abs().sqrt()
        return shaped[..., :inputs], shaped[..., inputs:]
