"""Geometry of problems in the unit square."""

from __future__ import annotations

import torch
from torch import Tensor


def at_nodes(values: Tensor, node: Tensor) -> Tensor:
    """Return the values `[B, N, C]` at one node `[B]` of each world, `[B, C]`."""
    return values[torch.arange(len(node), device=node.device), node]


def way(place: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the distance between two nodes `[B]` of each world with places `[B, N, 2]`, `[B]`."""
    return torch.linalg.vector_norm(at_nodes(place, start) - at_nodes(place, end), dim=-1)


def symmetric(place: Tensor, symmetry: Tensor) -> Tensor:
    """Return places `[B, N, 2]` of the unit square under one of its eight symmetries.

    Args:
        place: within [0, 1].
        symmetry: `[B]` int64, 0 for none, below 8: its bits mirror x, mirror y and exchange both.
    """
    bits = torch.stack([symmetry >> bit & 1 for bit in range(3)], -1).bool()
    mirrored = torch.where(bits[:, None, :2], 1 - place, place)
    return torch.where(bits[:, None, 2:], mirrored.flip(-1), mirrored)
