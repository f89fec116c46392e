"""Neighbours of points: which are within a radius, and which are nearest, in memory linear in their number.

Both searches give what a comparison of all pairs gives, ties and coincident points included. A spatial index
(`cells.py` or `kd_tree.py`) gives candidates and a distance below which no other point lies. The decision is
then made with the same arithmetic as for all pairs, in the floating-point type of the positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

BLOCK = 2**20
"""Number of distances that are computed at once where the candidates of many points are compared."""


@dataclass(frozen=True)
class Cloud:
    """Points of W worlds.

    Attributes:
        position: `[W, N, P]`.
        sends: `[W, N]` bool, points that may be neighbours of others.
        receives: `[W, N]` bool, points whose neighbours are searched.
    """

    position: Tensor
    sends: Tensor
    receives: Tensor

    @property
    def rows(self) -> Tensor:
        """Positions of all worlds, `[W * N, P]`."""
        return self.position.flatten(0, 1)

    @property
    def extent(self) -> Tensor:
        """Largest difference of two senders in each coordinate, `[W, P]`; zero without senders."""
        senders = self.sends.unsqueeze(-1)
        low = self.position.masked_fill(~senders, torch.inf).amin(1)
        high = self.position.masked_fill(~senders, -torch.inf).amax(1)
        return (high - low).clamp(min=0.0)

    def finite(self) -> Cloud:
        """Return the cloud without points at infinity or NaN, in float64, as a spatial index needs it."""
        is_finite = self.position.isfinite().all(-1)
        position = self.position.detach().masked_fill(~is_finite.unsqueeze(-1), 0.0).double()
        return Cloud(position, self.sends & is_finite, self.receives & is_finite)


def distance_of(apart: Tensor, dim: int) -> Tensor:
    """Return the length of displacements along `dim`; its gradient is zero where they are zero."""
    square = reduce(torch.add, apart.square().unbind(dim))
    coincide = square == 0
    return square.masked_fill(coincide, 1.0).sqrt().masked_fill(coincide, 0.0)


def rounding(dtype: torch.dtype) -> tuple[float, float]:
    """Return bounds of the relative and the absolute error of a distance computed in `dtype`."""
    numbers = torch.finfo(dtype)
    return 16 * numbers.eps, 4 * numbers.tiny**0.5


def outer_radius(radius: float, dtype: torch.dtype) -> float:
    """Return a radius around all points whose computed distance is below `radius`."""
    relative, absolute = rounding(dtype)
    return radius * (1 + relative) + absolute


def inner_radius(radius: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a distance below the computed distance of every point that is at least `radius` away."""
    relative, absolute = rounding(dtype)
    return (radius * (1 - relative) - absolute).clamp(max=torch.finfo(dtype).max ** 0.5)


def links_between(cloud: Cloud, source: Tensor, target: Tensor, *, radius: float) -> Tensor:
    """Return which candidate pairs are links: rows `[L]` of two points each, of the same world."""
    rows = cloud.rows.detach()
    apart = rows.index_select(0, source) - rows.index_select(0, target)
    return (distance_of(apart, -1) < radius) & (source != target)


@dataclass
class NearestFound:
    """The k nearest senders of every point, as far as they are known.

    Attributes:
        source: `[W * N, k]` int64, the node within its world, nearest first; of equal distances the first.
        is_link: `[W * N, k]` bool, false past the last neighbour.
    """

    source: Tensor
    is_link: Tensor

    @classmethod
    def nothing(cls, cloud: Cloud, k: int) -> NearestFound:
        """Return the result before any point is searched."""
        source = torch.zeros(cloud.sends.numel(), k, dtype=torch.int64, device=cloud.sends.device)
        return cls(source, torch.zeros_like(source, dtype=torch.bool))

    def decide(self, cloud: Cloud, target: Tensor, candidates: Tensor, safe: Tensor | None) -> Tensor:
        """Choose the nearest candidates of some points, and return the points for which this is final.

        Args:
            cloud: the points.
            target: rows `[R]` of the points.
            candidates: rows `[R, C]` of senders; -1 for none.
            safe: `[R]`, a distance below those of all other senders; None if there are no others.
        """
        rows, nodes = cloud.rows.detach(), cloud.sends.shape[1]
        source = candidates.clamp(min=0)
        apart = rows[source] - rows[target].unsqueeze(1)
        distance = distance_of(apart, -1).clamp(max=torch.finfo(rows.dtype).max)
        distance = distance.masked_fill((candidates < 0) | (source == target.unsqueeze(1)), torch.inf)
        nearest, distance = smallest(distance, source % nodes, self.source.shape[1])
        is_final = torch.ones_like(target, dtype=torch.bool) if safe is None else distance[:, -1] < safe
        self.source[target], self.is_link[target] = nearest, distance < torch.inf
        return is_final


def smallest(distance: Tensor, node: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k nodes of smallest distance and their distances, `[R, k]`, sorted; ties by node.

    Args:
        distance: `[R, C]`.
        node: `[R, C]` int64, different in each row where the distance is finite.
        k: number of nodes; absent ones are filled with node 0 at infinity.
    """
    missing = k - distance.shape[1]
    if missing > 0:
        distance = torch.nn.functional.pad(distance, (0, missing), value=torch.inf)
        node = torch.nn.functional.pad(node, (0, missing))
    if distance.shape[1] > k:
        last = distance.topk(k, largest=False, sorted=False).values.amax(-1, keepdim=True)
        nodes = torch.iinfo(torch.int64).max // 4
        order = torch.where(distance < last, node - nodes, torch.where(distance == last, node, nodes))
        chosen = order.topk(k, largest=False, sorted=False).indices
        distance, node = distance.gather(1, chosen), node.gather(1, chosen)
    node, by_node = node.sort(1)
    distance, by_distance = distance.gather(1, by_node).sort(dim=1, stable=True)
    return node.gather(1, by_distance), distance


def nearest_of_all(cloud: Cloud, found: NearestFound, target: Tensor) -> None:
    """Compare points `target [R]` with all senders of their worlds, in blocks of rows."""
    nodes = cloud.sends.shape[1]
    node = torch.arange(nodes, device=target.device)
    rows = max(BLOCK // nodes, 1)
    for start in range(0, len(target), rows):
        block = target[start : start + rows]
        candidates = (block // nodes * nodes).unsqueeze(-1) + node
        is_sender = cloud.sends.flatten()[candidates]
        found.decide(cloud, block, torch.where(is_sender, candidates, -1), None)


def nearest_in_blocks(cloud: Cloud, k: int) -> NearestFound:
    """Find the k nearest senders of every point by comparing all pairs in blocks, without a host wait."""
    found = NearestFound.nothing(cloud, k)
    nearest_of_all(cloud, found, torch.arange(cloud.sends.numel(), device=cloud.sends.device))
    found.is_link &= cloud.receives.reshape(-1, 1)
    return found
