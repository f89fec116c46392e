"""Edges computed from positions, so that rollouts and replay store positions and never N x N matrices."""

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
        displacement: `[*B, N, N, P]`, `pos[source] - pos[target]`: the sender as the receiver sees it.
        distance: `[*B, N, N]`; its gradient is zero where two nodes coincide.
    """

    displacement: Tensor
    distance: Tensor


class PairFeature(Protocol):
    """Numbers that describe one ordered pair of nodes; the parts of a rule's edge features."""

    def width(self, position_dim: int) -> int:
        """How many numbers there are for a pair."""

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:
        """The numbers of every pair, `[*B, N, N, width]`, source first."""


@dataclass(frozen=True)
class Displacement:
    """`pos[source] - pos[target]`, P numbers."""

    def width(self, position_dim: int) -> int:
        """P."""
        return position_dim

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:  # noqa: ARG002
        """The displacement as it is."""
        return pairs.displacement


@dataclass(frozen=True)
class Distance:
    """The distance, one number."""

    def width(self, position_dim: int) -> int:  # noqa: ARG002
        """One."""
        return 1

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:  # noqa: ARG002
        """The distance as a column."""
        return pairs.distance.unsqueeze(-1)


@dataclass(frozen=True)
class PairFunction:
    """Pair features of an environment's own.

    Args:
        function: takes the graph and its `Pairs`, gives `[*B, N, N, num_features]`, source first. It may read
            any entry of the graph. What it gives for pairs that are no edge is ignored.
        num_features: how many numbers it gives for a pair.

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
        """As declared."""
        return self.num_features

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:
        """What the function gives."""
        return self.function(graph, pairs)


NodeTypes = tuple[int, ...] | None
Features = tuple[PairFeature, ...]


class PositionRule(EdgeSource):
    """What rules over positions share: who may send to whom, and what an edge carries.

    Attributes:
        features: parts of the edge features, concatenated; `()` for edges without features.
        senders: node types that send; None for all.
        receivers: node types that receive; None for all. With `receivers=(0,)` edges are one-way: nodes of
            type 0 hear everybody, the others hear nobody.
    """

    features: Features
    senders: NodeTypes
    receivers: NodeTypes

    needs_positions = True

    @property
    def needs_types(self) -> int:  # type: ignore[override]
        """One more than the highest type that the rule speaks of."""
        return max((*(self.senders or ()), *(self.receivers or ()), -1)) + 1

    def width(self, position_dim: int) -> int:
        """The widths of all parts together."""
        return sum(feature.width(position_dim) for feature in self.features)

    def __call__(self, graph: TensorDict) -> Edges:
        """The pairs that the rule links, in slots for all ordered pairs."""
        pairs = pairs_of(graph)
        linked = self.link(pairs.distance, self.allowed(graph)).flatten(-2)
        index = all_pairs(pairs.distance.shape[-1], linked.device).expand(*linked.shape[:-1], -1, -1)
        attr = self.attributes(graph, pairs)
        return Edges(index, linked, None if attr is None else attr.flatten(-3, -2), complete=True)

    @abstractmethod
    def link(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Which allowed pairs are edges; all three `[*B, N, N]`, source first."""

    def allowed(self, graph: TensorDict) -> Tensor:
        """Pairs of distinct existing nodes whose types may send and receive, `[*B, N, N]` bool."""
        exists = graph["node_mask"]
        sends = exists & _of_types(graph, self.senders)
        receives = exists & _of_types(graph, self.receivers)
        distinct = ~torch.eye(exists.shape[-1], dtype=torch.bool, device=exists.device)
        return sends.unsqueeze(-1) & receives.unsqueeze(-2) & distinct

    def attributes(self, graph: TensorDict, pairs: Pairs) -> Tensor | None:
        """The features of all pairs, `[*B, N, N, D]`, or None where the rule has none."""
        parts = [feature(graph, pairs) for feature in self.features]
        return torch.cat(parts, -1) if parts else None


@dataclass(frozen=True)
class Radius(PositionRule):
    """An edge both ways between all nodes less than `radius` apart, however many there are.

    Distinct nodes at one position are neighbours at distance zero; a node is never its own neighbour; a pair
    at exactly `radius` is not linked.

    Args:
        radius: above zero; infinity links everybody.
        features: parts of the edge features, concatenated; `()` for edges without features.
        senders: node types that send; None for all.
        receivers: node types that receive; None for all.

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
            raise ValueError(f"Radius.radius must be above zero, got {self.radius}")
        _check_rule(self)

    def link(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """Nearer than the radius."""
        return allowed & (distance < self.radius)


@dataclass(frozen=True)
class Nearest(PositionRule):
    """Every node hears the `k` nodes nearest to it, or all there are where there are fewer.

    Nodes at equal distance are taken in the order of their slots. A node is never its own neighbour.

    Args:
        k: one or more.
        features: parts of the edge features, concatenated; `()` for edges without features.
        senders: node types that send; None for all.
        receivers: node types that receive; None for all.
        pairs: true for slots for all ordered pairs, which dense kernels read as they are; false for only k
            slots per node, `target * k + rank`, which spares sparse convolutions the others.
    """

    k: int
    features: Features = (Displacement(), Distance())
    _: KW_ONLY
    senders: NodeTypes = None
    receivers: NodeTypes = None
    pairs: bool = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"Nearest.k must be one or more, got {self.k}")
        _check_rule(self)

    def __call__(self, graph: TensorDict) -> Edges:
        """The k nearest of every node."""
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
        """Among the k nearest of the target."""
        source = self.ranked(distance, allowed)
        return torch.zeros_like(allowed).scatter(-2, source, True) & allowed

    def ranked(self, distance: Tensor, allowed: Tensor) -> Tensor:
        """The sources nearest to each target, in order, those not allowed last, `[*B, min(k, N - 1), N]`."""
        finite = distance.clamp(max=torch.finfo(distance.dtype).max)
        cost = finite.masked_fill(~allowed, torch.inf).transpose(-1, -2)
        nearest = cost.argsort(dim=-1, stable=True).narrow(-1, 0, min(self.k, distance.shape[-1] - 1))
        return nearest.transpose(-1, -2)


def pairs_of(graph: TensorDict) -> Pairs:
    """Displacements and distances of all ordered pairs of nodes; absent nodes count as if at the origin."""
    position = graph["pos"].masked_fill(~graph["node_mask"].unsqueeze(-1), 0.0).movedim(-1, -2)
    apart = position.unsqueeze(-1) - position.unsqueeze(-2)  # [*B, P, N, N]: sums over P stay contiguous
    square = apart.square().sum(-3)
    coincide = square == 0
    distance = square.masked_fill(coincide, 1.0).sqrt().masked_fill(coincide, 0.0)
    return Pairs(apart.movedim(-3, -1), distance)


def _of_types(graph: TensorDict, types: NodeTypes) -> Tensor:
    """Which nodes are of one of `types`, `[*B, N]` bool; all of them where `types` is None."""
    if types is None:
        return torch.ones_like(graph["node_mask"])
    none = torch.zeros_like(graph["node_mask"])
    return reduce(lambda found, kind: found | (graph["node_type"] == kind), types, none)


def _check_rule(rule: PositionRule) -> None:
    """Raise ValueError for types or features that no graph can have."""
    name = type(rule).__name__
    for field in ("senders", "receivers"):
        types = getattr(rule, field)
        if types is not None and (not types or min(types) < 0):
            raise ValueError(f"{name}.{field} must be None or node types from zero up, got {types}")
    for feature in rule.features:
        if isinstance(feature, type) or not hasattr(feature, "width"):
            raise ValueError(f"{name}.features must be pair features such as Distance(), got {feature!r}")
