"""Slots of padded graphs: which dimensions count nodes or edges, and how many of their slots graphs use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from tensordict import NestedKey, TensorDictBase
from torch import Tensor

from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.keys import GRAPH, MASK, PRIOR

Counted = Literal["nodes", "edges"]

_OF_GRAPH: dict[str, tuple[Counted, int]] = {
    "x": ("nodes", 0),
    "node_mask": ("nodes", 0),
    "pos": ("nodes", 0),
    "node_type": ("nodes", 0),
    "edge_index": ("edges", 1),
    "edge_mask": ("edges", 0),
    "edge_attr": ("edges", 0),
}
"""What a dimension of an entry of a graph counts, and which of its dimensions, without the batch."""


class Slots(NamedTuple):
    """A dimension of an entry of an observation that counts slots of nodes or edges.

    Attributes:
        key: the entry.
        counted: what its slots are.
        place: the number of the dimension, without the batch dimensions.
    """

    key: NestedKey
    counted: Counted
    place: int


def slots_of(observation: TensorDictBase, layout: ActionLayout | None) -> Iterator[Slots]:
    """Yield the dimensions of an observation that count nodes or edges.

    Args:
        observation: any batch size, with `graph`.
        layout: of the actions, whose mask may have such dimensions; None if no mask is read.
    """
    graph = observation.get(GRAPH)
    for name, (counted, place) in _OF_GRAPH.items():
        if graph.get(name, None) is not None:
            yield Slots((GRAPH, name), counted, place)
    for key in (MASK, PRIOR):
        if layout is not None and layout.mask_dims is not None and observation.get(key, None) is not None:
            for place, dim in enumerate(layout.mask_dims):
                if dim == "nodes":
                    yield Slots(key, "nodes", place)
                elif dim == "edges":
                    yield Slots(key, "edges", place)


def used_slots(mask: Tensor) -> Tensor:
    """Return how many slots are needed, up to the last that exists: `[*B, K]` bool to `[*B]` int64.

    Example:
        >>> used_slots(torch.tensor([[True, False, True, False], [False, False, False, False]]))
        tensor([3, 0])
    """
    if not mask.shape[-1]:
        return mask.sum(-1)
    kind = torch.int16 if mask.shape[-1] < 1 << 15 else torch.int64
    number = torch.arange(1, mask.shape[-1] + 1, dtype=kind, device=mask.device)
    return (mask * number).amax(-1).long()


def used_by(observation: TensorDictBase) -> dict[Counted, Tensor]:
    """Return how many slots of nodes, and of stored edges, every graph needs, `[*B]` each."""
    graph = observation.get(GRAPH)
    found: dict[Counted, Tensor] = {"nodes": used_slots(graph.get("node_mask"))}
    if (edges := graph.get("edge_mask", None)) is not None:
        found["edges"] = used_slots(edges)
    return found
