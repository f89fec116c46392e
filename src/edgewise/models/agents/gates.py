"""A linear layer of gated features, evaluated at several quantile levels at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

SELECT_FROM = 1 << 24
"""Multiplications of a quantile from which on leaving out closed gates pays."""
OPEN_SHARE = 0.75
"""Largest share of open gates for which leaving out the closed ones pays."""


def gated(layer: nn.Linear, h: Tensor, *, gate: Tensor) -> Tensor:
    """Compute `layer(h * gate)` for every quantile, `[*B, Q, outputs]`.

    Gates that all rows share multiply the weights instead of the features, which avoids a product Q times as
    large as the features. About half of them are closed (zero) in a new network, and more in a trained one:
    on a CPU, large batches are multiplied with the weights of open gates only.

    Args:
        layer: of `C` inputs, with bias.
        h: features `[*B, C]`.
        gate: `[*B, Q, C]`, or `[Q, C]` shared by all rows; the output of a ReLU, so that closed gates have no
            gradient.

    Example:
        >>> gated(nn.Linear(3, 2), torch.ones(4, 3), gate=torch.rand(5, 3)).shape
        torch.Size([4, 5, 2])
    """
    if gate.dim() > 2:
        return layer(h.unsqueeze(-2) * gate)
    if leaves_out(h, gate, outputs=layer.out_features):
        # The bias is the weight of one more feature, whose gate is always open.
        rows = functional.pad(h.reshape(-1, h.shape[-1]), (0, 1), value=1.0)
        weight = torch.cat((layer.weight, layer.bias.unsqueeze(1)), 1)
        found = OpenGates.apply(rows, weight, functional.pad(gate, (0, 1), value=1.0))
        return found.view(*h.shape[:-1], len(gate), layer.out_features)
    weight = (layer.weight * gate.unsqueeze(1)).flatten(0, 1)
    return functional.linear(h, weight, layer.bias.repeat(len(gate))).unflatten(-1, (len(gate), -1))


def leaves_out(h: Tensor, gate: Tensor, *, outputs: int) -> bool:
    """Return whether leaving out closed gates is faster; counting them would make the host wait for a GPU."""
    if h.device.type != "cpu" or h.numel() * outputs < SELECT_FROM or torch.compiler.is_compiling():
        return False
    return int(gate.count_nonzero()) <= OPEN_SHARE * gate.numel()


class OpenGates(torch.autograd.Function):
    """One matrix product for each quantile, with the features whose gates are open."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, gate: Tensor) -> Tensor:
        """Map features `[M, C]`, weights `[H, C]` and gates `[Q, C]` to `[M, Q * H]`."""
        found = h.new_empty(len(h), len(gate) * len(weight))
        saved = []
        for values, outputs in zip(gate, found.split(len(weight), 1), strict=True):
            is_open = values.nonzero().squeeze(1)
            features, factors = h.index_select(1, is_open), values.index_select(0, is_open)
            weights = weight.index_select(1, is_open)
            scaled = weights * factors
            torch.mm(features, scaled.t(), out=outputs)
            saved += [is_open, features, factors, weights, scaled]
        ctx.save_for_backward(*saved)
        ctx.inputs = h.shape[1]
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of features, weights and gates."""
        saved, width = ctx.saved_tensors, ctx.saved_tensors[3].shape[0]
        of_h = gradient.new_zeros(len(gradient), ctx.inputs)
        of_weight = gradient.new_zeros(ctx.inputs, width)
        of_gate = gradient.new_zeros(len(saved) // 5, ctx.inputs)
        for number, outputs in enumerate(gradient.split(width, 1)):
            is_open, features, factors, weights, scaled = saved[5 * number : 5 * number + 5]
            product = features.t() @ outputs
            of_gate[number].index_copy_(0, is_open, (product * weights.t()).sum(1))
            of_weight.index_add_(0, is_open, product * factors.unsqueeze(1))
            of_h.index_add_(1, is_open, outputs @ scaled)
        return of_h, of_weight.t(), of_gate
