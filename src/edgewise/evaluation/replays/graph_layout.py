"""Places in the plane for the nodes of a graph: projected positions, or a layout computed from the edges."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from torch import Tensor

MAX_STRESS_NODES = 300
"""Largest graph laid out by its distances; larger ones are drawn as a circle."""
ROUNDS = 60
"""Rounds of stress majorisation."""
OBLIQUE = (0.35, 0.25)
"""Where the third axis points in the projection of positions in space."""


def project(position: Tensor) -> Tensor:
    """Project positions `[..., P]` to the plane, `[..., 2]`.

    One number becomes a place on a line. Positions in space are seen in an oblique projection. Numbers after
    the third are ignored.
    """
    if position.shape[-1] == 1:
        return torch.cat((position, torch.zeros_like(position)), -1)
    plane = position[..., :2]
    if position.shape[-1] == 2:
        return plane
    return plane + position[..., 2:3] * position.new_tensor(OBLIQUE)


def layout(num_nodes: int, edge_index: Tensor) -> Tensor:
    """Compute a place for each node of a graph, `[num_nodes, 2]`; equal graphs get equal places.

    Classical scaling of the distances in the graph, improved by stress majorisation
    (https://doi.org/10.1007/978-3-540-31843-9_25). Parts that no path joins are put a little farther apart
    than the largest distance within one.

    Args:
        num_nodes: number of nodes n.
        edge_index: `[2, e]` int64; directions are ignored.
    """
    if num_nodes < 3 or num_nodes > MAX_STRESS_NODES:
        return circle(num_nodes)
    distance = _distances(num_nodes, edge_index)
    start = _classical_scaling(distance) + 0.05 * circle(num_nodes)
    return _majorise(start, distance)


def circle(num_nodes: int) -> Tensor:
    """Return places on a circle of radius 1, `[num_nodes, 2]`."""
    angle = torch.arange(num_nodes) * (2 * math.pi / max(num_nodes, 1))
    return torch.stack((angle.cos(), angle.sin()), -1)


def _distances(num_nodes: int, edge_index: Tensor) -> Tensor:
    """Compute the distances between all pairs of nodes, `[n, n]`."""
    source, target = edge_index.cpu().numpy()
    links = coo_array((np.ones(len(source)), (source, target)), shape=(num_nodes, num_nodes))
    found = shortest_path(links.tocsr(), directed=False, unweighted=True)
    reached = np.isfinite(found)
    apart = found[reached].max() + 1
    return torch.from_numpy(np.where(reached, found, apart)).float()


def _classical_scaling(distance: Tensor) -> Tensor:
    """Return the two leading coordinates of classical multidimensional scaling, `[n, 2]`."""
    square = distance.square()
    centred = square - square.mean(0) - square.mean(1, keepdim=True) + square.mean()
    value, vector = torch.linalg.eigh(-0.5 * centred)
    leading = vector[:, -2:]
    sign = leading.gather(0, leading.abs().argmax(0, keepdim=True)).sign()
    return leading * sign * value[-2:].clamp(min=0).sqrt()


def _majorise(place: Tensor, distance: Tensor) -> Tensor:
    """Reduce the weighted stress of places `[n, 2]`; the weight of a pair is its inverse squared distance."""
    apart = distance.clamp(min=1.0)
    weight = apart.pow(-2).fill_diagonal_(0.0)
    total = weight.sum(1, keepdim=True)
    for _ in range(ROUNDS):
        difference = place.unsqueeze(1) - place
        length = difference.norm(dim=-1).clamp(min=1e-6)
        pulled = place + difference * (apart / length).unsqueeze(-1)
        place = (weight.unsqueeze(-1) * pulled).sum(1) / total
    return place
