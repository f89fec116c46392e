"""Compress numbers of any size into a range that a network can handle."""

from __future__ import annotations

from torch import Tensor


def symlog(x: Tensor) -> Tensor:
    """Compute `sign(x) log(1 + |x|)`: about `x` near zero, logarithmic in its size far out."""
    return x.sign() * x.abs().log1p()
