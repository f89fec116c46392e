"""Links that a search has found, as padded edges."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.graphs.edges import Edges
from edgewise.graphs.neighbours import Cloud


def slots_per_target(source: Tensor, is_link: Tensor) -> Edges:
    """Return edges from sources `[*B, N, k]` to each node, in the slots `target * k + rank`."""
    target = torch.arange(source.shape[-2], device=source.device).unsqueeze(-1).expand_as(source)
    return Edges(torch.stack((source, target), -3).flatten(-2), is_link.flatten(-2), simple=True)


def slots_per_world(
    cloud: Cloud, source: Tensor, target: Tensor, *, is_link: Tensor, num_slots: int | None
) -> Edges:
    """Return links between rows of a cloud as edges `[W, 2, E]`, in the order of all pairs.

    Args:
        cloud: of W worlds with N nodes.
        source: `[L]`, rows of the cloud.
        target: `[L]`.
        is_link: `[L]` bool.
        num_slots: E; None for the largest number of edges in a world.
    """
    worlds, nodes = cloud.sends.shape
    if num_slots is None:
        source, target = source[is_link], target[is_link]
        is_link = torch.ones_like(source, dtype=torch.bool)
    key = (source * nodes + target % nodes).masked_fill(~is_link, worlds * nodes * nodes).sort().values
    start = torch.arange(worlds + 1, device=key.device) * nodes * nodes
    first = torch.searchsorted(key, start)
    count = first.diff()
    slots = num_slots or int(count.max())
    row = torch.arange(slots, device=key.device)
    mask = row < count.unsqueeze(-1)
    place = (first[:-1].unsqueeze(-1) + row).masked_fill(~mask, 0)
    pair = (key[place] if len(key) else place).masked_fill(~mask, 0) % (nodes * nodes)
    overflow = None if num_slots is None else (count > slots).any()
    return Edges(torch.stack((pair // nodes, pair % nodes), 1), mask, simple=True, overflow=overflow)
