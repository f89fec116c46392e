"""Performance profiles: the share of runs above each score, with pointwise bands.

Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(https://arxiv.org/abs/2108.13264), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edgewise.evaluation.bounds import FEWEST, Values, combined_bounds, share_bounds
from edgewise.evaluation.statistics import LEVEL


@dataclass(frozen=True)
class Profile:
    """The share of runs whose score is above each threshold, `[thresholds]` each."""

    thresholds: Values
    share: Values
    low: Values
    high: Values


def performance_profile(scores: ArrayLike, thresholds: ArrayLike, *, level: float = LEVEL) -> Profile:
    """Compute the share of all runs and tasks with a score above each threshold.

    Args:
        scores: `[runs, tasks]`, comparable across tasks.
        thresholds: `[thresholds]`.
        level: confidence level of the band at each threshold, in (0, 1). The band is exact in each task and
            combined over tasks. It is NaN for fewer than three runs.

    Example:
        >>> profile = performance_profile([[0.2], [0.6]], [0.0, 0.5, 0.6])
        >>> profile.share.tolist()
        [1.0, 0.5, 0.0]
    """
    table = np.asarray(scores, dtype=np.float64)
    limits = np.asarray(thresholds, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(f"finite scores [runs, tasks] are needed, got shape {table.shape}")
    share = (table[..., None] > limits).mean(axis=(0, 1))
    if len(table) < FEWEST:
        unknown = np.full_like(share, np.nan)
        return Profile(limits, share, unknown, unknown)
    above = (table[..., None] > limits).sum(axis=0).astype(np.float64).T
    low, high = combined_bounds(above / len(table), *share_bounds(above, len(table), level))
    return Profile(limits, share, np.maximum(low, 0.0), np.minimum(high, 1.0))
