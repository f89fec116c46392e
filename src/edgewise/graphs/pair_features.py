"""The geometry of pairs of nodes, and the features of edges that are computed from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.neighbours import distance_of


@dataclass(frozen=True)
class Pairs:
    """The geometry of pairs of nodes: of all ordered pairs of a graph, or of those that are edges.

    `[*B, *L]` is `[*B, N, N]` for all ordered pairs, source first, and `[*B, E]` for listed pairs.

    Attributes:
        displacement: `[*B, *L, P]`, `pos[source] - pos[target]`.
        distance: `[*B, *L]`; its gradient is zero if two nodes coincide.
        index: `[*B, 2, E]`, sources and targets of listed pairs; None for all ordered pairs.
    """

    displacement: Tensor
    distance: Tensor
    index: Tensor | None = None

    def source(self, values: Tensor) -> Tensor:
        """Return node values `[*B, N, C]` at the sources, broadcastable to `[*B, *L, C]`."""
        return values.unsqueeze(-2) if self.index is None else at_nodes(values, self.index[..., 0, :])

    def target(self, values: Tensor) -> Tensor:
        """Return node values `[*B, N, C]` at the targets, broadcastable to `[*B, *L, C]`."""
        return values.unsqueeze(-3) if self.index is None else at_nodes(values, self.index[..., 1, :])


class PairFeature(Protocol):
    """Features of ordered pairs of nodes, from which edge features are concatenated."""

    def width(self, position_dim: int) -> int:
        """Return the number of features of a pair."""

    def __call__(self, graph: TensorDict, pairs: Pairs) -> Tensor:
        """Compute the features of every pair, `[*B, *L, width]`, see `Pairs`."""


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
        function: maps the graph and its `Pairs` to `[*B, *L, num_features]`. It may read any entry of the
            graph, by `pairs.source(values)` and `pairs.target(values)`, which work for all pairs and for
            listed ones. Its result for pairs that are not edges is ignored.
        num_features: number of features of a pair.

    Example:
        >>> from edgewise.graphs.proximity import Radius
        >>> def closing_speed(graph, pairs):
        ...     velocity = graph["x"][..., 2:4]
        ...     relative = pairs.source(velocity) - pairs.target(velocity)
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


def pairs_of(graph: TensorDict) -> Pairs:
    """Compute displacements and distances of all ordered pairs; absent nodes count as at the origin."""
    position = graph["pos"].masked_fill(~graph["node_mask"].unsqueeze(-1), 0.0).movedim(-1, -2)
    apart = position.unsqueeze(-1) - position.unsqueeze(-2)  # [*B, P, N, N]: sums over P stay contiguous
    return Pairs(apart.movedim(-3, -1), distance_of(apart, -3))


def at_nodes(values: Tensor, node: Tensor) -> Tensor:
    """Return rows `node [*B, E]` of node values `[*B, N, C]`, `[*B, E, C]`."""
    return values.gather(-2, node.unsqueeze(-1).expand(*node.shape, values.shape[-1]))
