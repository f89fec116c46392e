"""Numbers of any size made small enough for a network, such as queues."""

from __future__ import annotations

from torch import Tensor


def symlog(x: Tensor) -> Tensor:
    """`sign(x) log(1 + |x|)`: near zero the number itself, far out its size."""
    return x.sign() * x.abs().log1p()
