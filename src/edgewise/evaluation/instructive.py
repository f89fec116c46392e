"""Choose which episodes of an evaluation are worth watching."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.evaluation.bounds import Values

CANDIDATES = 16
"""Number of episodes that are recorded for one to be chosen."""
MEMORY = 1 << 26
"""Bytes that recorded episodes may take beyond those that are asked for."""


def candidates(wanted: int, *, episodes: int, bytes_per_step: int, steps: int) -> int:
    """Return how many episodes to record for `wanted` of them to be chosen, as far as memory allows.

    Example:
        >>> candidates(1, episodes=64, bytes_per_step=1000, steps=100)
        16
        >>> candidates(1, episodes=64, bytes_per_step=10**6, steps=1000)
        1
    """
    if wanted == 0:
        return 0
    affordable = MEMORY // max(1, bytes_per_step * steps)
    return min(episodes, max(wanted, min(max(CANDIDATES, 2 * wanted), affordable)))


def choose_episodes(lengths: Sequence[float] | Values, success: Values | None, *, count: int) -> list[int]:
    """Return the indices of `count` instructive episodes, the most instructive first.

    The first is a success that is longer than three quarters of them or as long, the second the longest
    failure, or the longest episode if there is no failure; the others follow from long to short. Without
    successes, or where the environment does not define success, every episode counts as one.

    Args:
        lengths: steps of each episode, `[n]`.
        success: 1 or 0 of each, `[n]`; NaN where undefined; None if the environment has no such metric.
        count: number of episodes.

    Example:
        >>> choose_episodes([1, 5, 3, 40], np.array([1.0, 1.0, 1.0, 0.0]), count=2)
        [1, 3]
    """
    steps = np.asarray(lengths, dtype=np.float64)
    solved = np.ones(len(steps), dtype=bool) if success is None else ~(np.asarray(success) < 0.5)
    typical = steps[solved] if solved.any() else steps
    long = steps >= np.quantile(typical, 0.75, method="higher")
    eligible = np.flatnonzero(long & (solved | ~solved.any()))
    first = min(eligible.tolist(), key=lambda index: (steps[index], index))
    by_length = sorted(range(len(steps)), key=lambda index: (-steps[index], index))
    failures = [index for index in by_length if not solved[index]]
    order = dict.fromkeys([first, *failures[:1], *by_length])
    return list(order)[:count]
