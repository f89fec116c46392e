"""A spatial index on the CPU: the k-d tree of scipy, one for each world."""

from __future__ import annotations

import torch
from scipy.spatial import cKDTree
from torch import Tensor

from edgewise.graphs.neighbours import (
    BLOCK,
    Cloud,
    NearestFound,
    inner_radius,
    links_between,
    nearest_of_all,
    outer_radius,
)

SPARE = 4
"""Candidates beyond k, so that ties at the k-th distance can be decided."""


def within(cloud: Cloud, radius: float) -> tuple[Tensor, Tensor]:
    """Find all links shorter than a radius: sources and targets, both `[L]`."""
    sound, nodes = cloud.finite(), cloud.sends.shape[1]
    reach = outer_radius(radius, cloud.position.dtype)
    found = [torch.zeros(2, 0, dtype=torch.int64)]
    for world, (position, sends, receives) in enumerate(
        zip(sound.position, sound.sends, sound.receives, strict=True)
    ):
        found.append(_pairs(position, sends, receives, reach) + world * nodes)
    source, target = torch.cat(found, 1)
    is_link = links_between(cloud, source, target, radius=radius)
    return source[is_link], target[is_link]


def _pairs(position: Tensor, sends: Tensor, receives: Tensor, reach: float) -> Tensor:
    """Return the pairs of one world within reach, `[2, L]`, sources first."""
    senders, receivers = sends.nonzero().squeeze(-1), receives.nonzero().squeeze(-1)
    if not len(senders) or not len(receivers):
        return torch.zeros(2, 0, dtype=torch.int64)
    tree = _tree(position[senders])
    if torch.equal(senders, receivers):
        pairs = torch.from_numpy(tree.query_pairs(reach, output_type="ndarray")).long().T
        return senders[torch.cat((pairs, pairs.flip(0)), 1)]
    pairs = tree.sparse_distance_matrix(_tree(position[receivers]), reach, output_type="ndarray")
    first, second = (torch.from_numpy(pairs[name].copy()).long() for name in ("i", "j"))
    return torch.stack((senders[first], receivers[second]))


def nearest(cloud: Cloud, k: int) -> NearestFound:
    """Find the k nearest senders of every receiver."""
    sound, nodes = cloud.finite(), cloud.sends.shape[1]
    found = NearestFound.nothing(cloud, k)
    for world in range(len(cloud.position)):
        senders = sound.sends[world].nonzero().squeeze(-1)
        left = sound.receives[world].nonzero().squeeze(-1)
        if not len(senders) or not len(left):
            continue
        tree, count = _tree(sound.position[world][senders]), k + 1 + SPARE
        while len(left) and count < len(senders):
            distance, place = tree.query(sound.position[world][left].numpy(), count)
            candidates = senders[torch.from_numpy(place)] + world * nodes
            safe = inner_radius(torch.from_numpy(distance[:, -1]), cloud.position.dtype)
            left = left[~found.decide(cloud, left + world * nodes, candidates, safe)]
            count = 4 * count if len(left) * nodes > BLOCK // 16 else len(senders)
        nearest_of_all(Cloud(cloud.position, sound.sends, sound.receives), found, left + world * nodes)
    return found


def _tree(points: Tensor) -> cKDTree:
    return cKDTree(points.numpy(), balanced_tree=False, compact_nodes=False)
