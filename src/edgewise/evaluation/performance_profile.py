"""Performance profiles: the share of runs above each score, with bands by a stratified bootstrap.

Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(https://arxiv.org/abs/2108.13264), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edgewise.evaluation.statistics import RESAMPLES, Values, bootstrap


@dataclass(frozen=True)
class Profile:
    """The share of runs whose score is above each threshold, `[thresholds]` each."""

    thresholds: Values
    share: Values
    low: Values
    high: Values


def performance_profile(
    scores: ArrayLike,
    thresholds: ArrayLike,
    *,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Profile:
    """Compute the share of all runs and tasks with a score above each threshold.

    Args:
        scores: `[runs, tasks]`, comparable across tasks; runs are resampled within each task.
        thresholds: `[thresholds]`.
        generator: draws the resamples.
        level: confidence level of the bands, in (0, 1).
        resamples: number of resamples.

    Example:
        >>> profile = performance_profile([[0.2], [0.6]], [0.0, 0.5, 0.6], generator=np.random.default_rng(0))
        >>> profile.share.tolist()
        [1.0, 0.5, 0.0]
    """
    table = np.asarray(scores, dtype=np.float64)
    limits = np.asarray(thresholds, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(f"finite scores [runs, tasks] are needed, got shape {table.shape}")
    share = (table[..., None] > limits).mean(axis=(0, 1))
    if len(table) == 1:
        unknown = np.full_like(share, np.nan)
        return Profile(limits, share, unknown, unknown)
    # The same resamples at every threshold, so that the bands fall as the profile does.
    state = generator.bit_generator.state
    draws = np.empty((resamples, len(limits)))
    for index, limit in enumerate(limits):
        generator.bit_generator.state = state

        def above(values: Values, limit: float = limit) -> Values:
            return (values > limit).mean(axis=-1)

        draws[:, index] = bootstrap(table, above, generator=generator, resamples=resamples)
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return Profile(limits, share, low, high)
