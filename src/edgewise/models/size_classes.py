"""Evaluate graphs of very different sizes in classes of about the same size, without their empty slots.

Networks work on padded graphs, so one graph of 500 nodes makes 63 of 10 nodes as expensive as itself. Where
two thirds of many slots are empty, the graphs of a batch are divided by size, each class is cut to the
slots that its largest graph uses, and the results are put together again. They are those of the whole batch
up to rounding, since padding has no effect. On a GPU and in compiled code shapes must not depend on data, and
batches stay whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from tensordict import NestedKey, TensorDictBase
from torch import Tensor
from torch.nn import functional

from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.edges import Explicit, needs_static_shapes
from edgewise.graphs.keys import ACTIVE, GRAPH, MASK
from edgewise.graphs.proximity import PositionRule
from edgewise.graphs.ragged import Ragged, padded
from edgewise.graphs.slots import Counted, slots_of, used_slots
from edgewise.graphs.spec import GraphSpec

STEP = 1.25
"""Factor between the sizes of neighbouring classes."""
LEAST_SAVED = 8_192
"""Empty slots of a batch from which dividing it is worth the time of further passes."""
LEAST_OF_CLASS = 1_024
"""Empty slots that a class of its own has to save."""

KNOWN = {"x", "node_mask", "pos", "node_type", "u", "edge_index", "edge_mask", "edge_attr"}
"""Entries of graphs that can be cut; a graph with others stays whole."""


class SizeClass(NamedTuple):
    """Some graphs of a batch.

    Attributes:
        rows: `[M]` int64, their places in the batch.
        observation: `[M]`, cut to the slots that they use.
    """

    rows: Tensor
    observation: TensorDictBase


def size_classes(
    observation: TensorDictBase,
    graph: GraphSpec,
    *,
    layout: ActionLayout | None,
    keys: Iterable[NestedKey],
    num_agents: int = 0,
) -> list[SizeClass] | None:
    """Divide a batch of observations by the size of their graphs; None if it should stay whole.

    Args:
        observation: `[*B]`.
        graph: shape and edge source of the graphs.
        layout: of the actions that are computed from them; None if only values are.
        keys: entries that are read.
        num_agents: the first nodes that are needed, if the observation does not say.
    """
    observed = observation.get(GRAPH, None)
    if observed is None:
        return None
    mask = observed.get("node_mask")
    if mask.device.type != "cpu" or (not isinstance(mask, Ragged) and needs_static_shapes(mask)):
        return None
    if mask.numel() < LEAST_SAVED:
        return None
    used = mask.used.reshape(-1) if isinstance(mask, Ragged) else used_slots(mask).reshape(-1)
    active = observation.get(ACTIVE, None)
    used = used.clamp(min=max(1, num_agents if active is None else active.shape[-1]))
    slots, live = mask.shape[-1] * len(used), int(used.sum())
    if slots - live < LEAST_SAVED or 3 * live > slots:
        return None
    if not _can_be_cut(observation, graph, layout):
        return None
    flat = observation.select(*keys, strict=False).reshape(-1)
    needed: dict[Counted, Tensor] = {"nodes": used}
    edges = flat.get(GRAPH).get("edge_mask", None)
    if edges is not None:
        needed["edges"] = edges.used if isinstance(edges, Ragged) else used_slots(edges)
    return [_cut(flat, rows, layout, needed) for rows in classes_by_size(needed["nodes"])]


def classes_by_size(used: Tensor) -> list[Tensor]:
    """Return the places of graphs `[M]` of about the same size, smallest first.

    Args:
        used: slots that each graph uses, `[M]`, one or more.
    """
    size, order = used.sort(stable=True)
    level = (size.double().log() / math.log(STEP)).ceil().long()
    counts = torch.unique_consecutive(level, return_counts=True)[1]
    classes = list(order.split(counts.tolist()))
    found, width, wasted = [classes.pop()], int(size[-1]), 0
    while classes:
        rows = classes.pop()
        empty = len(rows) * (width - int(used[rows[-1]]))
        if wasted + empty < LEAST_OF_CLASS:
            found[-1], wasted = torch.cat((rows, found[-1])), wasted + empty
        else:
            found.append(rows)
            width, wasted = int(used[rows[-1]]), 0
    return found[::-1]


def whole(observation: TensorDictBase) -> TensorDictBase:
    """Return an observation whose graphs are padded tensors."""
    graph = observation.get(GRAPH, None)
    if graph is None or not isinstance(graph.get("node_mask"), Ragged):
        return observation
    return padded(observation)


def joined_rows(
    parts: list[tuple[Tensor, Tensor]], shape: torch.Size, *, width: int | None = None, fill: float = 0.0
) -> Tensor:
    """Put results of classes back into a batch, `[*B, ...]`.

    Args:
        parts: rows `[M]` of the flat batch, and their results `[M, ...]`.
        shape: B.
        width: size of the last dimension; None if it is that of all results.
        fill: what shorter rows are filled up with.
    """
    values = [value for _, value in parts]
    if width is not None:
        values = [functional.pad(value, (0, width - value.shape[-1]), value=fill) for value in values]
    back = torch.cat([rows for rows, _ in parts]).argsort()
    found = torch.cat(values).index_select(0, back)
    return found.reshape(*shape, *found.shape[1:])


def num_choices(observation: TensorDictBase, layout: ActionLayout) -> int | None:
    """Return the number of choices of a decider in the whole batch; None if actions are numbers."""
    mask = observation.get(MASK, None)
    if mask is not None:
        return int(mask.shape[-1])
    graph = observation.get(GRAPH)
    names = {"nodes": "node_mask", "edges": "edge_mask"}
    found = names.get((layout.mask_dims or (None,))[-1] or "")
    return None if found is None else int(graph.get(found).shape[-1])


def _can_be_cut(observation: TensorDictBase, graph: GraphSpec, layout: ActionLayout | None) -> bool:
    """Return whether a graph with fewer slots is the same graph, and its actions the same actions."""
    has_known_entries = KNOWN.issuperset(observation.get(GRAPH).keys())
    if not has_known_entries or not isinstance(graph.edges, Explicit | PositionRule):
        return False
    return layout is None or layout.is_same_with_fewer_slots(graph)


def _cut(
    flat: TensorDictBase, rows: Tensor, layout: ActionLayout | None, needed: dict[Counted, Tensor]
) -> SizeClass:
    """Return some rows of a flat batch with the slots that they need."""
    most = {counted: int(slots[rows].max()) for counted, slots in needed.items()}
    wanted: dict[NestedKey, tuple[Counted, int]] = {
        key: (counted, place) for key, counted, place in slots_of(flat, layout) if counted in most
    }

    def cut(name: NestedKey, value: Tensor) -> Tensor:
        if name not in wanted:
            return value.padded()[rows] if isinstance(value, Ragged) else value[rows]
        counted, place = wanted[name]
        if isinstance(value, Ragged):
            return value.at(rows).padded(most[counted])
        return value.narrow(1 + place, 0, most[counted]).index_select(0, rows)

    return SizeClass(rows, flat.named_apply(cut, nested_keys=True, batch_size=[len(rows)]))
