"""A linear layer whose weights carry learnt noise: exploration that a network tunes by itself."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

Noise = tuple[Tensor, Tensor]
"""Of the inputs, and of the outputs."""


class NoisyLinear(nn.Module):
    """Factorised Gaussian noise on weights and biases (https://arxiv.org/abs/1706.10295).

    With the factors `p` of inputs and `q` of outputs, a row is `W x + b + q * (S (p * x) + s)`. Every row of
    a batch may have noise of its own, without any noisy matrix: robots that act side by side explore apart.
    Or all rows share theirs, and one noisy matrix takes half the work of that: for learning.

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
        """`[*B, outputs]` from `[*B, inputs]`; without noise the mean of the weights decides.

        Args:
            x: the input.
            noise: `[*B, inputs]` and `[*B, outputs]`, or `[inputs]` and `[outputs]` for the same in all rows.
        """
        if noise is None:
            return functional.linear(x, self.weight, self.bias)
        of_inputs, of_outputs = noise
        if of_inputs.dim() == 1:
            weight = torch.addcmul(self.weight, self.weight_sigma * of_inputs, of_outputs.unsqueeze(-1))
            return functional.linear(x, weight, torch.addcmul(self.bias, self.bias_sigma, of_outputs))
        mean = functional.linear(x, self.weight, self.bias)
        return mean + of_outputs * functional.linear(x * of_inputs, self.weight_sigma, self.bias_sigma)

    def draw(self, x: Tensor, *, shared: bool) -> Noise:
        """Fresh noise for every row of `x [*B, inputs]`, or one for all."""
        outputs, inputs = self.weight.shape
        lead = () if shared else x.shape[:-1]
        drawn = torch.randn((*lead, inputs + outputs), device=x.device, dtype=x.dtype)
        shaped = drawn.sign() * drawn.abs().sqrt()
        return shaped[..., :inputs], shaped[..., inputs:]
