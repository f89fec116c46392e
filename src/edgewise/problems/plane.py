"""Geometry of problems in the unit square."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def at_nodes(values: Tensor, node: Tensor) -> Tensor:
    """Return the values `[B, N, *C]` at one node `[B]` of each world, `[B, *C]`."""
    index = node.view(-1, *[1] * (values.ndim - 1)).expand(-1, 1, *values.shape[2:])
    return values.gather(1, index).squeeze(1)


def ways(place: Tensor, *nodes: Tensor) -> Tensor:
    """Return the distances from each node `[B]` to the next, `[B, K - 1]`, with places `[B, N, 2]`."""
    ends = place.gather(1, torch.stack(nodes, -1).unsqueeze(-1).expand(-1, -1, place.shape[-1]))
    return torch.linalg.vector_norm(ends[:, 1:] - ends[:, :-1], dim=-1)


def way(place: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the distance between two nodes `[B]` of each world with places `[B, N, 2]`, `[B]`."""
    return ways(place, start, end).squeeze(-1)


def centred(place: Tensor) -> Tensor:
    """Return places of the unit square with mean 0 and variance 1, as a network reads them.

    Raw coordinates differ less between nodes than the biases of a first layer, so that all nodes look alike
    when training begins.
    """
    return (place - 0.5) * math.sqrt(12)


def symmetric(place: Tensor, symmetry: Tensor) -> Tensor:
    """Return places `[B, N, 2]` of the unit square under one of its eight symmetries.

    Args:
        place: within [0, 1].
        symmetry: `[B]` int64, 0 for none, below 8: its bits mirror x, mirror y and exchange both.
    """
    bits = torch.stack([symmetry >> bit & 1 for bit in range(3)], -1).bool()
    mirrored = torch.where(bits[:, None, :2], 1 - place, place)
    return torch.where(bits[:, None, 2:], mirrored.flip(-1), mirrored)
