"""Products and moduli of complex vectors, stored as real parts followed by imaginary parts."""

from __future__ import annotations

import torch
from torch import Tensor


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Multiply complex vectors `[*, 2d]` componentwise."""
    (a, b), (c, d) = left.chunk(2, -1), right.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def conjugate(vector: Tensor) -> Tensor:
    """Conjugate complex vectors `[*, 2d]`."""
    real, imaginary = vector.chunk(2, -1)
    return torch.cat([real, -imaginary], -1)


def moduli(vector: Tensor) -> Tensor:
    """Compute the modulus of every complex component, `[*, 2d]` → `[*, d]`."""
    real, imaginary = vector.chunk(2, -1)
    return torch.sqrt(real.square() + imaginary.square() + torch.finfo(vector.dtype).tiny)
