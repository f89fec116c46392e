"""Clip gradients to a norm."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


@torch.no_grad()
def clip_grad_norm(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Clip the gradient norm of all `parameters` to `max_norm`, in place.

    Equivalent to `torch.nn.utils.clip_grad_norm_`, but for parameters of a single device and dtype, which
    avoids grouping them.

    Returns:
        The norm before clipping, 0-d.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm
