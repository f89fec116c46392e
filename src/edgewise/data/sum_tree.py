"""A sum tree with a wide fan-out, for sampling from and updating millions of priorities.

Each node is the sum of `FAN_OUT` adjacent children, whose cumulative sums are stored too. So one step down or
up the tree is one numpy operation on a small matrix for a whole batch. The levels end where a cumulative sum
over all nodes is cheap. If a leaf changes, its ancestors are summed again from their children: rounding
errors do not accumulate, and the same leaves always give the same tree, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]

FAN_OUT = 32
TOP = 1024
"""Largest number of nodes of the top level."""
BELOW_ONE = 1.0 - 2.0**-52


class SumTree:
    """Non-negative numbers by index, with search by cumulative sum.

    Args:
        capacity: the number of leaves, initially zero.

    Example:
        >>> tree = SumTree(1_000_000)
        >>> tree.set(np.array([3, 5]), np.array([1.0, 3.0]))
        >>> tree.find(np.array([0.1, 0.9]))
        array([3, 5])
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._levels = [np.zeros(_padded(capacity))]
        while len(self._levels[-1]) > TOP:
            self._levels.append(np.zeros(_padded(len(self._levels[-1]) // FAN_OUT)))
        self._running = [np.zeros((len(level) // FAN_OUT, FAN_OUT)) for level in self._levels[:-1]]

    @property
    def leaves(self) -> Numbers:
        """The numbers, `[capacity]`, read-only."""
        return self._levels[0][: self.capacity]

    @property
    def total(self) -> float:
        """The sum of all."""
        return float(self._levels[-1].sum())

    def set(self, index: Indices, value: Numbers) -> None:
        """Set the numbers at `index [M]`; of duplicates the largest is kept."""
        leaves = self._levels[0]
        leaves[index] = 0.0
        np.maximum.at(leaves, index, value)
        self._sum_up(index)

    def fill(self, values: Numbers) -> None:
        """Set the first `len(values)` numbers, and all others to zero."""
        self._levels[0][:] = 0.0
        self._levels[0][: len(values)] = values
        for below, running, above in zip(self._levels, self._running, self._levels[1:], strict=False):
            below.reshape(-1, FAN_OUT).cumsum(-1, out=running)
            above[: len(running)] = running[:, -1]

    def find(self, share: Numbers) -> Indices:
        """Return the first indices `[M]` at which the cumulative sum exceeds `share [M]` of the total.

        Shares are in [0, 1). The index of a zero is never returned, whatever the rounding.
        """
        running = self._levels[-1].cumsum()
        target = np.minimum(share, BELOW_ONE) * running[-1]
        node = running.searchsorted(target, side="right")
        target -= running[node] - self._levels[-1][node]
        rows = np.arange(len(share))
        for sums, level in zip(reversed(self._running), reversed(self._levels[:-1]), strict=True):
            running = sums.take(node, 0)
            target = np.minimum(np.maximum(target, 0.0), running[:, -1] * BELOW_ONE)
            child = (running > target[:, None]).argmax(-1)
            node = node * FAN_OUT + child
            target -= running[rows, child] - level[node]
        return node

    def _sum_up(self, index: Indices) -> None:
        """Recompute the ancestors of the leaves at `index`; duplicates are harmless."""
        for below, running, above in zip(self._levels, self._running, self._levels[1:], strict=False):
            index = index // FAN_OUT
            sums = below.reshape(-1, FAN_OUT).take(index, 0).cumsum(-1)
            running[index] = sums
            above[index] = sums[:, -1]


def _padded(count: int) -> int:
    """Round up to a multiple of the fan-out, so that children form whole rows."""
    return -(-count // FAN_OUT) * FAN_OUT
