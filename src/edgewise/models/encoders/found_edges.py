"""Find the edges of a batch once, where a rule computes them and several epochs learn from them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from edgewise.graphs.edges import Edges, may_branch_on
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.proximity import PositionRule
from edgewise.graphs.ragged import Ragged
from edgewise.graphs.spec import GraphSpec

FOUND = "found_edges"
"""Entry of graphs that carry their edges: `index [*B, 2, E]`, `mask [*B, E]` and, with features, `attr`."""
AT_ONCE = 2**17
"""Pairs of nodes that are compared at once."""
LARGEST = 2**28
"""Bytes that the edges of a batch may take."""


class _Listed(NamedTuple):
    """The edges of some graphs, one after another in the order of their slots.

    Attributes:
        counts: `[M]`, edges of each graph.
        ends: `[L, 2]`.
        attr: `[L, D]` or None.
    """

    counts: Tensor
    ends: Tensor
    attr: Tensor | None


def with_found_edges(samples: TensorDictBase, spec: GraphSpec) -> TensorDictBase:
    """Return samples whose graphs carry their edges in as many slots as the graph with most edges needs.

    Encoders of message passing then read them instead of applying the rule in every epoch; the edges, their
    order and their features are the same, bit for bit. Samples are returned as they are if edges are not
    computed by a rule, if they take too much memory, or on a GPU, where their number is not known.

    Args:
        samples: `[*B]`.
        spec: shape and edge source of the graphs.
    """
    graph = samples.get(GRAPH)
    mask = graph.get("node_mask")
    if not isinstance(spec.edges, PositionRule) or isinstance(mask, Ragged) or not may_branch_on(mask):
        return samples
    if 3 * int(mask.count_nonzero()) <= mask.numel():
        return samples
    flat, nodes = graph.reshape(-1), mask.shape[-1]
    parts = [_listed(spec.edges_of(part), nodes) for part in flat.split(max(1, AT_ONCE // nodes**2))]
    counts = torch.cat([part.counts for part in parts])
    slots, width = int(counts.max()), spec.edge_features
    if len(flat) * slots * (17 + 4 * width) > LARGEST:
        return samples
    each = counts.tolist()
    entries = {
        "index": _padded(torch.cat([part.ends for part in parts]), each).transpose(1, 2).contiguous(),
        "mask": torch.arange(slots) < counts.unsqueeze(-1),
    }
    features = [part.attr for part in parts if part.attr is not None]
    if features:
        entries["attr"] = _padded(torch.cat(features), each)
    found = TensorDict(entries, batch_size=[len(flat)]).reshape(graph.batch_size)
    return samples.copy().set(GRAPH, graph.copy().set(FOUND, found))


def found_edges(graph: TensorDictBase) -> Edges | None:
    """Return the edges that graphs carry; None if they carry none."""
    if FOUND not in graph.keys():  # noqa: SIM118 - a TensorDict is not a mapping of its keys
        return None
    found = graph[FOUND]
    return Edges(found["index"], found["mask"], found.get("attr", None), simple=True)


def _listed(edges: Edges, num_nodes: int) -> _Listed:
    """Return edges without absent ones."""
    row, slot = edges.mask.nonzero().unbind(1)
    if edges.complete:
        ends = torch.stack((slot // num_nodes, slot % num_nodes), -1)
    else:
        ends = edges.index[row, :, slot]
    attr = None if edges.attr is None else edges.attr[row, slot]
    return _Listed(edges.mask.sum(-1), ends, attr)


def _padded(rows: Tensor, counts: list[int]) -> Tensor:
    """Return the rows of each graph in slots, `[M, E, ...]`; zero in others."""
    return pad_sequence(rows.split(counts), batch_first=True)
