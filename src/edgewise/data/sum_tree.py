"""Sums over a million priorities that are drawn from and changed in microseconds: a tree of wide fan-out.

Each node is the sum of `FAN_OUT` children that lie side by side, with their running sums beside them, so a
step down or up the tree is one numpy operation on a small matrix for a whole batch. The levels end where a
running sum over all nodes is cheap. A changed leaf has its ancestors summed anew from their children: no
rounding error ever builds up, and the same leaves always give the same tree, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]

FAN_OUT = 32
TOP = 1024
"""Levels end at this many nodes or fewer."""
BELOW_ONE = 1.0 - 2.0**-52


class SumTree:
    """Non-negative numbers by index, of which any is found by its share of the whole.

    Args:
        capacity: how many numbers; all are zero at first.

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
        """The numbers, `[capacity]`, not to be written to."""
        return self._levels[0][: self.capacity]

    @property
    def total(self) -> float:
        """The sum of all."""
        return float(self._levels[-1].sum())

    def set(self, index: Indices, value: Numbers) -> None:
        """Change the numbers at `index [M]`; of several for one place the largest holds, in any order."""
        leaves = self._levels[0]
        leaves[index] = 0.0
        np.maximum.at(leaves, index, value)
        self._sum_up(index)

    def fill(self, values: Numbers) -> None:
        """Change the first `len(values)` numbers, and set the others to zero."""
        self._levels[0][:] = 0.0
        self._levels[0][: len(values)] = values
        for below, running, above in zip(self._levels, self._running, self._levels[1:], strict=False):
            below.reshape(-1, FAN_OUT).cumsum(-1, out=running)
            above[: len(running)] = running[:, -1]

    def find(self, share: Numbers) -> Indices:
        """The indices `[M]` at which the running sum first exceeds each `share [M]` in [0, 1) of the total.

        A number of zero is never found, whatever the rounding.
        """
        running = self._levels[-1].cumsum()
        wanted = np.minimum(share, BELOW_ONE) * running[-1]
        node = running.searchsorted(wanted, side="right")
        wanted -= running[node] - self._levels[-1][node]
        rows = np.arange(len(share))
        for sums, level in zip(reversed(self._running), reversed(self._levels[:-1]), strict=True):
            running = sums.take(node, 0)
            wanted = np.minimum(np.maximum(wanted, 0.0), running[:, -1] * BELOW_ONE)
            child = (running > wanted[:, None]).argmax(-1)
            node = node * FAN_OUT + child
            wanted -= running[rows, child] - level[node]
        return node

    def _sum_up(self, index: Indices) -> None:
        """Sum the ancestors of the leaves at `index` anew; writing one of them twice is no harm."""
        for below, running, above in zip(self._levels, self._running, self._levels[1:], strict=False):
            index = index // FAN_OUT
            sums = below.reshape(-1, FAN_OUT).take(index, 0).cumsum(-1)
            running[index] = sums
            above[index] = sums[:, -1]


def _padded(count: int) -> int:
    """The next multiple of the fan-out, so that children form whole rows."""
    return -(-count // FAN_OUT) * FAN_OUT
