"""Edges computed from positions, so that rollouts and replay buffers do not store N x N matrices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from typing import Protocol

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import Edges, EdgeSource, all_pairs


@dataclass(frozen=True)
class Pairs:
    """The geometry of all ordered pairs of nodes, source first.

    Attributes:
        displacement: `[*B, N, N, P]`, `pos[source] - pos[target]`.
        distance: `[*B, N, N]`; its gradient is zero if two nodes coincide.
    """

    displacement: Tensor
    distance: Tensor


class PairFeature(Protocol):
    """Features of ordered pairs of nodes, from which edge features are concatenated."""

    def width(self, position_dim: int) -> int:
        """Return the number of features of a pair."""

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:
        """Compute the features of every pair, `[*B, N, N, width]`, source first."""


@dataclass(frozen=True)
class Displacement:
    """`pos[source] - pos[target]`, P numbers."""

    def width(self, position_dim: int) -> int:
        """Return P."""
        return position_dim

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:  # noqa: ARG002
        """Return the displacement."""
        return pairs.displacement


@dataclass(frozen=True)
class Distance:
    """The distance, one number."""

    def width(self, position_dim: int) -> int:  # noqa: ARG002
        """Return 1."""
        return 1

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:  # noqa: ARG002
        """Return the distance as a column."""
        return pairs.distance.unsqueeze(-1)


@dataclass(frozen=True)
class PairFunction:
    """Pair features computed by a function.

    Args:
        function: maps the graph and its `Pairs` to `[*B, N, N, num_features]`, source first. It may read any
            entry of the graph. Its result for pairs that are not edges is ignored.
        num_features: number of features of a pair.

    Example:
        >>> def closing_speed(graph, pairs):
        ...     velocity = graph["x"][..., 2:4]
        ...     relative = velocity.unsqueeze(-2) - velocity.unsqueeze(-3)
        ...     return (relative * pairs.displacement).sum(-1, keepdim=True)
        >>> edges = Radius(1.0, features=(Displacement(), Distance(), PairFunction(closing_speed, 1)))
        >>> edges.width(position_dim=2)
        4
    """

    function: Callable[[TensorDict, Pairs], Tensor]
    num_features: int

    def width(self, position_dim: int) -> int:  # noqa: ARG002
        """Return `num_features`."""
        return self.num_features

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:
        """Call the function."""
        return self.function(graph, pairs)


NodeTypes = tuple[int, ...] | None
Features = tuple[PairFeature, ...]


class PositionRule(EdgeSource):
    """Base of edge sources that compute edges from positions.

    Attributes:
        features: parts of the edge features, concatenated; `()` for edges without features.
        senders: node types that may be sources; None for all.
        receivers: node types that may be targets; None for all. With `receivers=(0,)` all edges lead to nodes
            of type 0.
    """

    features: Features
    senders: NodeTypes
    receivers: NodeTypes

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
        exists = graph["node_mask"]
        sends = exists & _of_types(graph, self.senders)
        receives = exists & _of_types(graph, self.receivers)
        distinct = ~torch.eye(exists.shape[-1], dtype=torch.bool, device=exists.device)
        return sends.unsqueeze(-1) & receives.unsqueeze(-2) & distinct

    def attributes(self, graph: TensorDict, pairs: Pairs) -> Tensor | None:
        """Compute the features of all pairs, `[*B, N, N, D]`; None without features."""
        parts = [feature(graph, pairs) for feature in self.features]
        return torch.cat(parts, -1) if parts else None


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

    Example:
        >>> Radius(0.35, features=(Distance(),)).width(position_dim=2)
        1
    """

    radius: float
    features: Features = (Displacement(), Distance())
    _: KW_ONLY
    senders: NodeTypes = None
    receivers: NodeTypes = None

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise ValueError(f"Radius.radius must be positive, got {self.radius}")
        _check_rule(self)

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
        pairs: True for edge slots for all ordered pairs, which dense kernels use directly; False for k slots
            per node, `target * k + rank`, which is less work for sparse convolutions.
    """

    k: int
    features: Features = (Displacement(), Distance())
    _: KW_ONLY
    senders: NodeTypes = None
    receivers: NodeTypes = None
    pairs: bool = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"Nearest.k must be at least one, got {self.k}")
        _check_rule(self)

    def __call__(self, graph: TensorDict) -> Edges:
        """Compute the edges from the k nearest nodes."""
        if self.pairs:
            return super().__call__(graph)
        pairs, allowed = pairs_of(graph), self.allowed(graph)
        source = self.ranked(pairs.distance, allowed)
        mask = allowed.gather(-2, source).transpose(-1, -2).flatten(-2)
        target = torch.arange(source.shape[-1], device=source.device).expand_as(source)
        index = torch.stack((source, target), -3).transpose(-1, -2).flatten(-2)
        attr = self.attributes(graph, pairs)
        if attr is not None:
            flat = attr.flatten(-3, -2)
            slot = (index[..., 0, :] * source.shape[-1] + index[..., 1, :]).unsqueeze(-1)
            attr = flat.gather(-2, slot.expand(*slot.shape[:-1], flat.shape[-1]))
        return Edges(index, mask, attr)

    def link(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Return the allowed pairs whose source is among the k nearest of the target."""
        source = self.ranked(distance, allowed)
        return torch.zeros_like(allowed).scatter(-2, source, True) & allowed

    def ranked(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Return the sources nearest to each target, those not allowed last, `[*B, min(k, N - 1), N]`."""
        finite = distance.clamp(max=torch.finfo(distance.dtype).max)
        cost = finite.masked_fill(~allowed, torch.inf).transpose(-1, -2)
        nearest = cost.argsort(dim=-1, stable=True).narrow(-1, 0, min(self.k, distance.shape[-1] - 1))
        return nearest.transpose(-1, -2)


def pairs_of(graph: TensorDict) -> Pairs:
    """Compute displacements and distances of all ordered pairs; absent nodes count as at the origin."""
    position = graph["pos"].masked_fill(~graph["node_mask"].unsqueeze(-1), 0.0).movedim(-1, -2)
    apart = position.unsqueeze(-1) - position.unsqueeze(-2)  # [*B, P, N, N]: sums over P stay contiguous
    square = apart.square().sum(-3)
    coincide = square == 0
    distance = square.masked_fill(coincide, 1.0).sqrt().masked_fill(coincide, 0.0)
    return Pairs(apart.movedim(-3, -1), distance)


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
    for feature in rule.features:
        if isinstance(feature, type) or not hasattr(feature, "width"):
            raise ValueError(f"{name}.features must be pair features such as Distance(), got {feature!r}")
