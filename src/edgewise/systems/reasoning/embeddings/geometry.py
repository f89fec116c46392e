"""Vector functions of the embedding models: complex products and distances.

In all four models the score of (head, relation, tail) compares one entity with a combination of the other
two. Complex vectors are stored as real parts followed by imaginary parts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 1 << 18
"""Number of differences per chunk, chosen to fit the CPU cache."""


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Multiply complex vectors `[*, 2d]` componentwise."""
    (a, b), (c, d) = left.chunk(2, -1), right.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def conjugate(vector: Tensor) -> Tensor:
    """Conjugate complex vectors `[*, 2d]`."""
    real, imaginary = vector.chunk(2, -1)
    return torch.cat([real, -imaginary], -1)


def rotation(angle: Tensor) -> Tensor:
    """Return unit complex components `[*, 2d]` with the given angles `[*, d]`."""
    return torch.cat([angle.cos(), angle.sin()], -1)


def moduli(vector: Tensor) -> Tensor:
    """Compute the modulus of every complex component, `[*, 2d]` → `[*, d]`."""
    real, imaginary = vector.chunk(2, -1)
    return torch.sqrt(real.square() + imaginary.square() + torch.finfo(vector.dtype).tiny)


def distance(left: Tensor, right: Tensor, norm: str) -> Tensor:
    """Compute distances of rows, `[n, D]` and `[n, D]` → `[n]`."""
    if norm == "moduli":
        return moduli(left - right).sum(-1)
    return torch.linalg.vector_norm(left - right, 2 if norm == "euclidean" else 1, dim=-1)


def distances(left: Tensor, right: Tensor, norm: str) -> Tensor:
    """Compute distances of every pair, `[m, D]` and `[k, D]` → `[m, k]`."""
    if norm == "moduli":
        found: Tensor = _SumOfModuli.apply(left, right)
        return found
    return torch.cdist(left, right, p=2.0 if norm == "euclidean" else 1.0)


class _SumOfModuli(torch.autograd.Function):
    """Σ_d |left_d − right_d| over complex components of every pair, computed in chunks."""

    @staticmethod
    def forward(context: Any, left: Tensor, right: Tensor) -> Tensor:
        context.save_for_backward(left, right)
        rows = [_lengths(part, right)[2].sum(-1) for part in left.split(_rows(right))]
        return torch.cat(rows) if rows else left.new_zeros(0, len(right))

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        left, right = context.saved_tensors
        of_left, of_right = [], torch.zeros_like(right)
        real_part, imaginary_part = of_right.chunk(2, -1)
        rows = _rows(right)
        for part, weight in zip(left.split(rows), gradient.split(rows), strict=True):
            real, imaginary, length = _lengths(part, right)
            scale = weight.unsqueeze(-1) / length
            real, imaginary = real.mul_(scale), imaginary.mul_(scale)
            of_left.append(torch.cat([real.sum(1), imaginary.sum(1)], -1))
            real_part -= real.sum(0)
            imaginary_part -= imaginary.sum(0)
        return (torch.cat(of_left) if of_left else torch.zeros_like(left)), of_right


def _lengths(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute real and imaginary differences of every pair and their moduli, each `[m, k, d]`."""
    (a, b), (c, d) = left.unsqueeze(1).chunk(2, -1), right.unsqueeze(0).chunk(2, -1)
    real, imaginary = a - c, b - d
    squares = torch.addcmul(real.square(), imaginary, imaginary)
    return real, imaginary, squares.add_(torch.finfo(left.dtype).tiny).sqrt_()


def _rows(right: Tensor) -> int:
    return max(1, CHUNK // max(1, right.numel() // 2))
