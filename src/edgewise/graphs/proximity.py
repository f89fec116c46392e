"""Edges computed from positions, so that rollouts and replay buffers do not store edges.

Small graphs have an edge slot for every ordered pair of nodes, which dense kernels use directly. Large graphs
have slots for their edges only, found by a spatial index: memory and time grow with the number of edges.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from typing import Literal

import torch
from tensordict import TensorDict
from torch import Tensor
from torch.nn import functional

from edgewise.graphs import cells, kd_tree
from edgewise.graphs.edge_slots import slots_per_target, slots_per_world
from edgewise.graphs.edges import Edges, EdgeSource, all_pairs, needs_static_shapes
from edgewise.graphs.neighbours import Cloud, distance_of, nearest_in_blocks
from edgewise.graphs.pair_features import Displacement, Distance, PairFeature, Pairs, at_nodes, pairs_of

ALL_PAIRS = 192
"""Largest number of nodes for which `search="auto"` compares all pairs (benchmarks/neighbours.py)."""

Search = Literal["auto", "pairs", "cells", "kd_tree"]
SEARCHES = ("auto", "pairs", "cells", "kd_tree")


NodeTypes = tuple[int, ...] | None
Features = tuple[PairFeature, ...]


class PositionRule(EdgeSource):
    """Base of edge sources that compute edges from positions.

    Attributes:
        features: parts of the edge features, concatenated; `()` for edges without features.
        senders: node types that may be sources; None for all.
        receivers: node types that may be targets; None for all. With `receivers=(0,)` all edges lead to nodes
            of type 0.
        search: how neighbours are found. `pairs` compares all pairs, and gives edge slots for all of them.
            `cells` sorts nodes by cells, on any device. `kd_tree` uses scipy, on a CPU. `auto` is `pairs` for
            up to 192 nodes, and otherwise the fastest that does not make the host wait for a device. All find
            the same edges.
    """

    features: Features
    senders: NodeTypes
    receivers: NodeTypes
    search: Search

    needs_positions = True

    @property
    def needs_types(self) -> int:  # type: ignore[override]
        """One more than the highest node type in `senders` and `receivers`."""
        return max((*(self.senders or ()), *(self.receivers or ()), -1)) + 1

    def width(self, position_dim: int) -> int:
        """Return the sum of the widths of all parts."""
        return sum(feature.width(position_dim) for feature in self.features)

    def __call__(self, graph: TensorDict) -> Edges:
        """Compute the edges, in slots for all ordered pairs."""
        pairs = pairs_of(graph)
        linked = self.link(pairs.distance, self.allowed(graph)).flatten(-2)
        index = all_pairs(pairs.distance.shape[-1], linked.device).expand(*linked.shape[:-1], -1, -1)
        attr = self.attributes(graph, pairs)
        return Edges(index, linked, None if attr is None else attr.flatten(-3, -2), complete=True)

    @abstractmethod
    def link(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Return which allowed pairs are edges; all three tensors are `[*B, N, N]`, source first."""

    def allowed(self, graph: TensorDict) -> Tensor:
        """Return the pairs of distinct existing nodes whose types may send and receive, `[*B, N, N]` bool."""
        sends, receives = self.senders_of(graph), self.receivers_of(graph)
        distinct = ~torch.eye(sends.shape[-1], dtype=torch.bool, device=sends.device)
        return sends.unsqueeze(-1) & receives.unsqueeze(-2) & distinct

    def senders_of(self, graph: TensorDict) -> Tensor:
        """Return the existing nodes whose type may send, `[*B, N]` bool."""
        return graph["node_mask"] & _of_types(graph, self.senders)

    def receivers_of(self, graph: TensorDict) -> Tensor:
        """Return the existing nodes whose type may receive, `[*B, N]` bool."""
        return graph["node_mask"] & _of_types(graph, self.receivers)

    def cloud(self, graph: TensorDict) -> Cloud:
        """Return the nodes as points of W worlds, where W is the product of B."""
        position, mask = graph["pos"], graph["node_mask"]
        worlds = mask.shape[:-1].numel()
        return Cloud(
            position.reshape(worlds, *position.shape[-2:]),
            self.senders_of(graph).reshape(worlds, mask.shape[-1]),
            self.receivers_of(graph).reshape(worlds, mask.shape[-1]),
        )

    def attributes(self, graph: TensorDict, pairs: Pairs) -> Tensor | None:
        """Compute the features of pairs, `[*B, *L, D]`; None without features."""
        parts = [feature(graph, pairs) for feature in self.features]
        if not parts:
            return None
        for feature, part in zip(self.features, parts, strict=True):
            if part.shape[:-1] != pairs.distance.shape:
                raise ValueError(
                    f"{feature!r} gives features {list(part.shape)} for pairs {list(pairs.distance.shape)}: "
                    "a pair function reads nodes by pairs.source(values) and pairs.target(values)"
                )
        return torch.cat(parts, -1)

    def listed(self, graph: TensorDict, edges: Edges) -> Edges:
        """Return edges in slots of their own, with their features."""
        if not self.features:
            return edges
        position = graph["pos"].masked_fill(~graph["node_mask"].unsqueeze(-1), 0.0)
        source, target = edges.index.unbind(-2)
        apart = at_nodes(position, source) - at_nodes(position, target)
        pairs = Pairs(apart, distance_of(apart, -1), edges.index)
        return replace(edges, attr=self.attributes(graph, pairs))


@dataclass(frozen=True)
class Radius(PositionRule):
    """Edges in both directions between all nodes less than `radius` apart.

    Nodes at the same position are neighbours at distance zero. A node is never its own neighbour. A pair at
    exactly `radius` is not an edge.

    Args:
        radius: positive; infinity for a complete graph.
        features: parts of the edge features, concatenated; `()` for edges without features.
        senders: node types that may be sources; None for all.
        receivers: node types that may be targets; None for all.
        search: how neighbours are found, see `PositionRule`. With an infinite radius all pairs are compared.
        max_edges: number of edge slots of a graph, for large graphs on a GPU: edges are then found by cells
            without waiting for their number. A graph with more edges is reported by `Edges.overflow`, and
            stops a run. None to count the edges; all pairs are then compared on a GPU.

    Example:
        >>> Radius(0.35, features=(Distance(),)).width(position_dim=2)
        1
    """

    radius: float
    features: Features = (Displacement(), Distance())
    _: KW_ONLY
    senders: NodeTypes = None
    receivers: NodeTypes = None
    search: Search = "auto"
    max_edges: int | None = None

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise ValueError(f"Radius.radius must be positive, got {self.radius}")
        if self.max_edges is not None and self.max_edges < 1:
            raise ValueError(f"Radius.max_edges must be at least one, got {self.max_edges}")
        _check_rule(self)

    def __call__(self, graph: TensorDict) -> Edges:
        """Compute the edges: slots for all ordered pairs of a small graph, slots for edges of a large one."""
        search = self.chosen_search(graph["pos"])
        if search == "pairs":
            return super().__call__(graph)
        cloud = self.cloud(graph)
        if search == "kd_tree":
            source, target = kd_tree.within(cloud, self.radius)
            is_link, overflow = torch.ones_like(source, dtype=torch.bool), None
        else:
            capacity = self.max_edges and _candidates(self.max_edges, cloud.position)
            source, target, is_link, overflow = cells.within(cloud, self.radius, capacity=capacity)
        edges = slots_per_world(cloud, source, target, is_link=is_link, num_slots=self.max_edges)
        if overflow is not None and edges.overflow is not None:
            edges = replace(edges, overflow=edges.overflow | overflow)
        lead, slots = graph["node_mask"].shape[:-1], edges.mask.shape[-1]
        index, mask = edges.index.reshape(*lead, 2, slots), edges.mask.reshape(*lead, slots)
        return self.listed(graph, replace(edges, index=index, mask=mask))

    def chosen_search(self, position: Tensor) -> Search:
        """Return how the neighbours of nodes at `position [*B, N, P]` are found."""
        if self.radius == torch.inf or position.numel() == 0:
            return "pairs"
        is_static = needs_static_shapes(position)
        if self.search != "auto":
            return "pairs" if is_static and self.max_edges is None and self.search != "cells" else self.search
        if self.max_edges is not None:
            return "cells" if is_static or position.device.type != "cpu" else "kd_tree"
        if is_static or position.device.type != "cpu" or position.shape[-2] <= ALL_PAIRS:
            return "pairs"
        return "kd_tree"

    def link(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Return the allowed pairs closer than the radius."""
        return allowed & (distance < self.radius)


@dataclass(frozen=True)
class Nearest(PositionRule):
    """Edges to every node from the `k` nodes nearest to it, or from all if there are fewer.

    Ties in distance are broken by the order of node slots. A node is never its own neighbour.

    Args:
        k: number of neighbours, at least one.
        features: parts of the edge features, concatenated; `()` for edges without features.
        senders: node types that may be sources; None for all.
        receivers: node types that may be targets; None for all.
        search: how neighbours are found, see `PositionRule`. On a GPU, `cells` makes the host wait; `auto`
            compares all pairs there, in blocks of limited memory.
        pairs: True for edge slots for all ordered pairs of a small graph, which dense kernels use directly.
            False for k slots per node, `target * k + rank`, which is less work for sparse convolutions. Large
            graphs always have k slots per node. Slots of neighbours that are not there hold no edge.
    """

    k: int
    features: Features = (Displacement(), Distance())
    _: KW_ONLY
    senders: NodeTypes = None
    receivers: NodeTypes = None
    search: Search = "auto"
    pairs: bool = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"Nearest.k must be at least one, got {self.k}")
        _check_rule(self)

    def __call__(self, graph: TensorDict) -> Edges:
        """Compute the edges from the k nearest nodes."""
        search = self.chosen_search(graph["pos"])
        if search != "pairs":
            return self._searched(graph, search)
        if self.pairs:
            return super().__call__(graph)
        pairs, allowed = pairs_of(graph), self.allowed(graph)
        order = self._order(pairs.distance, allowed)
        # Nodes have k slots also in graphs with fewer others, so that slots are those of a larger graph.
        source = functional.pad(order, (0, self.k)).narrow(-1, 0, self.k)
        rank = torch.arange(self.k, device=order.device)
        is_link = allowed.transpose(-1, -2).gather(-1, source) & (rank < order.shape[-1])
        return self.listed(graph, slots_per_target(source, is_link))

    def chosen_search(self, position: Tensor) -> str:
        """Return how the neighbours of nodes at `position [*B, N, P]` are found."""
        if needs_static_shapes(position) or position.numel() == 0 or position.shape[-2] == 1:
            return "pairs"
        if self.search != "auto":
            return self.search
        if position.shape[-2] <= ALL_PAIRS:
            return "pairs"
        return "kd_tree" if position.device.type == "cpu" else "blocks"

    def _searched(self, graph: TensorDict, search: str) -> Edges:
        find = {"kd_tree": kd_tree.nearest, "cells": cells.nearest, "blocks": nearest_in_blocks}[search]
        mask = graph["node_mask"]
        found = find(self.cloud(graph), min(self.k, mask.shape[-1] - 1))
        missing = (0, self.k - found.source.shape[-1])
        source, is_link = (functional.pad(each, missing) for each in (found.source, found.is_link))
        shape = (*mask.shape, self.k)
        return self.listed(graph, slots_per_target(source.reshape(shape), is_link.reshape(shape)))

    def link(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Return the allowed pairs whose source is among the k nearest of the target."""
        if torch.compiler.is_exporting():
            # The rank of every source, since a number of neighbours would have to depend on that of nodes.
            rank = self._order(distance, allowed).argsort(dim=-1, stable=True)
            return (rank < self.k).transpose(-1, -2) & allowed
        source = self.ranked(distance, allowed)
        return torch.zeros_like(allowed).scatter(-2, source, True) & allowed

    def ranked(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Return the sources nearest to each target, those not allowed last, `[*B, min(k, N - 1), N]`."""
        nearest = self._order(distance, allowed).narrow(-1, 0, min(self.k, distance.shape[-1] - 1))
        return nearest.transpose(-1, -2)

    def _order(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Return all sources in the order of their distance to each target, `[*B, N, N]`, target first."""
        finite = distance.clamp(max=torch.finfo(distance.dtype).max)
        cost = finite.masked_fill(~allowed, torch.inf).transpose(-1, -2)
        return cost.argsort(dim=-1, stable=True)


def _candidates(max_edges: int, position: Tensor) -> int:
    """Return the number of pairs to compare for `max_edges` edges per world.

    In an even cloud, the cells around a point hold 1.5, 2.9 or 6.4 times as many points as the ball in them,
    in 1, 2 or 3 dimensions. Twice that many are allowed for, and the point itself.
    """
    worlds, nodes, dims = position.shape
    share = (3, 6, 13)[min(dims, cells.AXES) - 1]
    return worlds * (share * max_edges + nodes)


def _of_types(graph: TensorDict, types: NodeTypes) -> Tensor:
    """Return which nodes are of one of `types`, `[*B, N]` bool; all of them if `types` is None."""
    if types is None:
        return torch.ones_like(graph["node_mask"])
    none = torch.zeros_like(graph["node_mask"])
    return reduce(lambda found, kind: found | (graph["node_type"] == kind), types, none)


def _check_rule(rule: PositionRule) -> None:
    """Raise ValueError for invalid node types or features."""
    name = type(rule).__name__
    for field in ("senders", "receivers"):
        types = getattr(rule, field)
        if types is not None and (not types or min(types) < 0):
            raise ValueError(f"{name}.{field} must be None or non-negative node types, got {types}")
    if rule.search not in SEARCHES:
        raise ValueError(f"{name}.search must be one of {', '.join(SEARCHES)}, got {rule.search!r}")
    for feature in rule.features:
        if isinstance(feature, type) or not hasattr(feature, "width"):
            raise ValueError(f"{name}.features must be pair features such as Distance(), got {feature!r}")
