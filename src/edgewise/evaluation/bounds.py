"""Confidence bounds in closed form or by inverting a test, as pure functions on arrays of samples.

Every function takes any leading dimensions, so that simulations of coverage run as one batch. A bound is NaN
where the samples cannot tell it. `benchmarks/coverage.py` prints how often each covers the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

Values = NDArray[np.float64]
Bounds = tuple[Values, Values]
Test = Callable[[Values], Values]
"""A function of a hypothetical value that is positive where it is inside the bounds."""

FEWEST = 3
"""Fewest samples of which the spread is estimated."""
FEWEST_PAIRS = 5
"""Fewest pairs of which a ratio of means or a score with ties is told."""
ROUNDING = 1e-12
"""Largest standard error, as a share of the estimate, that is taken for rounding."""
STEPS = 60
"""Bisections of a bound: more than a float has bits of fraction."""


def mean_bounds(values: Values, level: float) -> Bounds:
    """Compute bounds of the mean of `[..., n]` by Student's t, corrected for skewness.

    The correction is Hall's monotone transformation (https://doi.org/10.1111/j.2517-6161.1992.tb01872.x).
    NaN for fewer than three samples, and where all are equal.
    """
    return strata_bounds(values.mean(-1), (values,), level)


def strata_bounds(estimate: Values, strata: Sequence[Values], level: float) -> Bounds:
    """Compute bounds of an estimate `[...]` that is the sum of the means of independent samples.

    Args:
        estimate: the sum of the means.
        strata: samples `[..., n]`, one array each; degrees of freedom are Welch's.
        level: confidence level.
    """
    variance, spread, third, slack = (np.zeros_like(estimate) for _ in range(4))
    for values in strata:
        count = values.shape[-1]
        residuals = values - values.mean(-1, keepdims=True)
        own = (residuals**2).mean(-1) / count
        spread, third = spread + own, third + (residuals**3).mean(-1) / count**2
        estimated = own * count / max(count - 1, 1)
        variance, slack = variance + estimated, slack + estimated**2 / max(count - 1, 1)
    low, high = corrected_student_bounds(
        estimate,
        variance=variance,
        skewness=_ratio(third, spread**1.5),
        freedom=_ratio(variance**2, slack),
        level=level,
    )
    if min(values.shape[-1] for values in strata) < FEWEST:
        return np.full_like(low, np.nan), np.full_like(high, np.nan)
    return low, high


def corrected_student_bounds(
    estimate: Values, *, variance: Values, skewness: Values, freedom: Values, level: float
) -> Bounds:
    """Compute bounds of an estimate from its own variance, skewness and degrees of freedom, `[...]` each.

    The tail probability is reduced by the factor `n / (n + 2)`, where `n` is the degrees of freedom plus one:
    few samples estimate their skewness poorly. NaN where there is no variance.
    """
    tail = (1 - level) / 2 * (freedom + 1) / (freedom + 3)
    quantile = -special.stdtrit(np.maximum(freedom, 1.0), tail)
    error = np.sqrt(variance)
    low = estimate - _untransform(quantile, skewness) * error
    high = estimate - _untransform(-quantile, skewness) * error
    known = error > ROUNDING * np.abs(estimate)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def share_bounds(successes: Values, count: int | Values, level: float) -> Bounds:
    """Compute mid-P exact bounds of a share from its number of successes `[...]` out of `count`.

    Counts are discrete, so that coverage varies with the true share. The tails are reduced by a fifth: no
    share is then covered less than two points below the level.
    """
    hits = np.asarray(successes, dtype=np.float64)
    misses = count - hits
    tail = 0.8 * (1 - level) / 2

    def above(p: Values) -> Values:
        """Compute the probability of more successes, and half that of as many."""
        at_least = np.where(hits > 0, special.betainc(np.maximum(hits, 1), misses + 1, p), 1.0)
        more = np.where(misses > 0, special.betainc(hits + 1, np.maximum(misses, 1), p), 0.0)
        return (at_least + more) / 2

    share = hits / count
    low = np.where(hits > 0, _crossing(lambda p: above(p) - tail, share, np.zeros_like(share)), 0.0)
    high = np.where(misses > 0, _crossing(lambda p: 1 - above(p) - tail, share, np.ones_like(share)), 1.0)
    return low, high


def sign_bounds(better: Values, worse: Values, count: int | Values, level: float) -> Bounds:
    """Compute bounds of P(better) - P(worse) over pairs by Tango's score test.

    Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design" (1998). Counts are `[...]`; pairs that are neither better nor worse are ties. NaN for fewer than
    five pairs.
    """
    plus, minus = np.asarray(better, dtype=np.float64), np.asarray(worse, dtype=np.float64)
    limit = special.ndtri((1 + level) / 2)

    def score(difference: Values) -> Values:
        linear = -plus - minus + (2 * count - plus + minus) * difference
        constant = -minus * difference * (1 - difference)
        root = np.sqrt(np.maximum(linear**2 - 8 * count * constant, 0.0))
        losses = np.maximum((root - linear) / (4 * count), 0.0)
        spread = np.sqrt(np.maximum(count * (2 * losses + difference * (1 - difference)), 0.0))
        return _ratio(plus - minus - count * difference, spread)

    observed = (plus - minus) / count
    low = _crossing(lambda d: limit - score(d), observed, np.full_like(observed, -1.0))
    high = _crossing(lambda d: limit + score(d), observed, np.full_like(observed, 1.0))
    enough = np.asarray(count) >= FEWEST_PAIRS
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def score_bounds(won: Values, lost: Values, count: int | Values, level: float) -> Bounds:
    """Compute bounds of the mean score over pairs, of which `won` score 1, `lost` 0 and the others 0.5.

    They are those of `sign_bounds`. The one at the nearer of 0 and 1 is at least as far as that of a share,
    since a score test covers too little close to the ends.
    """
    low, high = ((1 + end) / 2 for end in sign_bounds(won, lost, count, level))
    score = (1 + (np.asarray(won, dtype=np.float64) - lost) / count) / 2
    least, most = share_bounds(score * count, count, level)
    low = np.where(score < 0.5, np.minimum(low, least), low)
    high = np.where(score > 0.5, np.maximum(high, most), high)
    return low, high


def difference_bounds(left: Values, right: Values, level: float) -> Bounds:
    """Compute Welch's bounds of the difference of the means of `[..., n]` and `[..., m]`, not paired."""
    return strata_bounds(left.mean(-1) - right.mean(-1), (left, -right), level)


def ratio_bounds(values: Values, other: Values, level: float) -> Bounds:
    """Compute bounds of the ratio of the means of pairs `[..., n]`: all ratios that the pairs do not reject.

    A ratio r is kept if the interval of the mean of `values - r * other` holds zero (Fieller's method). NaN
    where the interval of the denominator reaches zero, since the ratio then has no bound, and for fewer than
    five pairs.
    """
    count = values.shape[-1]
    # Samples whose denominator happens to vary little are kept, so that the others are tested more strictly.
    strict = 1 - (1 - level) * count / (count + 2)
    ratio = _ratio(values.mean(-1), other.mean(-1))
    floor, _ = mean_bounds(other, level)
    constant = (other.std(-1) == 0) & (other.mean(-1) > 0)

    def inside(trial: Values) -> Values:
        low, high = mean_bounds(values - trial[..., None] * other, strict)
        held = np.where(np.isnan(low), 1.0, np.minimum(-low, high))
        return np.asarray(held, dtype=np.float64)

    spread = np.abs(ratio) + values.std(-1) / np.where(other.mean(-1) > 0, other.mean(-1), 1.0) + 1e-12
    low = _crossing(inside, ratio, _outside(inside, ratio, -spread))
    high = _crossing(inside, ratio, _outside(inside, ratio, spread))
    ends = inside(low - spread * 1e-6), inside(high + spread * 1e-6)
    known = ((floor > 0) | constant) & (ends[0] < 0) & (ends[1] < 0) & (count >= FEWEST_PAIRS)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def improvement_bounds(
    improvement: Values, runs: int, others: int, level: float, *, tasks: int = 1
) -> Bounds:
    """Compute bounds of the probability that a run of one side beats one of the other, `[...]`.

    Newcombe's score method 5 (https://doi.org/10.1002/sim.2324): the variance is that of the hypothetical
    value, so that a probability of 0 or 1 has bounds as well. The mean over several tasks has the variance of
    tasks that are alike, which is the largest.
    """
    share = np.asarray(improvement, dtype=np.float64)
    limit = special.ndtri((1 + level) / 2)
    extra = (runs + others) / 2 - 1

    def inside(trial: Values) -> Values:
        spread = 1 + extra * ((1 - trial) / (2 - trial) + trial / (1 + trial))
        variance = trial * (1 - trial) * spread / (runs * others * tasks)
        return np.asarray(limit * np.sqrt(variance) - np.abs(trial - share), dtype=np.float64)

    low = np.where(share > 0, _crossing(inside, share, np.zeros_like(share)), 0.0)
    high = np.where(share < 1, _crossing(inside, share, np.ones_like(share)), 1.0)
    return low, high


def interquartile_bounds(table: Values, level: float) -> Bounds:
    """Compute bounds of the interquartile mean of all scores `[..., runs, tasks]`.

    Student's t for trimmed means (Tukey and McLaughlin, 1963): the variance is that of the winsorised scores
    within each task. NaN for fewer than four scores, whose interquartile mean is their mean, and for tasks
    with fewer than three runs.
    """
    runs, tasks = table.shape[-2:]
    total = runs * tasks
    cut = total // 4
    kept = total - 2 * cut
    ordered = np.sort(table.reshape(*table.shape[:-2], total), axis=-1)
    ends = ordered[..., cut], ordered[..., total - cut - 1]
    winsorised = np.clip(table, ends[0][..., None, None], ends[1][..., None, None])
    residuals = winsorised - winsorised.mean(-2, keepdims=True)
    squares, cubes = (residuals**2).sum((-1, -2)), (residuals**3).sum((-1, -2))
    freedom = max(1.0, min(kept - 1, kept * (1 - 1 / runs)))
    low, high = corrected_student_bounds(
        ordered[..., cut : total - cut].mean(-1),
        variance=squares / (kept * freedom),
        skewness=_ratio(cubes, squares**1.5),
        freedom=np.asarray(freedom),
        level=level,
    )
    if runs < FEWEST or cut == 0:
        return np.full_like(low, np.nan), np.full_like(high, np.nan)
    return low, high


def combined_bounds(estimates: Values, low: Values, high: Values) -> Bounds:
    """Compute bounds of the mean over strata from bounds of each, `[..., strata]` to `[...]`.

    Distances from estimate to bound add up as standard errors do (method of variance estimates recovery,
    https://doi.org/10.1177/0962280209105014).
    """
    centre, strata = estimates.mean(-1), estimates.shape[-1]
    below = np.sqrt(((estimates - low) ** 2).sum(-1)) / strata
    above = np.sqrt(((high - estimates) ** 2).sum(-1)) / strata
    return centre - below, centre + above


def _untransform(quantile: Values, skewness: Values) -> Values:
    """Invert `t + skew t² / 3 + skew² t³ / 27 + skew / 6`, which makes a studentised mean symmetric."""
    small = np.abs(skewness) < 1e-6
    safe = np.where(small, 1.0, skewness)
    return np.where(small, quantile, 3 / safe * (np.cbrt(1 + safe * (quantile - safe / 6)) - 1))


def _crossing(inside: Test, start: Values, end: Values) -> Values:
    """Find by bisection where `inside` turns negative between `start`, which is inside, and `end`."""
    near, far = np.array(start, dtype=np.float64), np.array(end, dtype=np.float64)
    for _ in range(STEPS):
        middle = (near + far) / 2
        kept = inside(middle) >= 0
        near, far = np.where(kept, middle, near), np.where(kept, far, middle)
    return (near + far) / 2


def _outside(inside: Test, start: Values, step: Values) -> Values:
    """Move away from `start` by doubled steps until `inside` is negative, or for twenty steps."""
    moved = np.array(step, dtype=np.float64)
    for _ in range(20):
        moved = np.where(inside(start + moved) >= 0, 2 * moved, moved)
    return start + moved


def _ratio(above: Values, below: Values) -> Values:
    """Divide, with 0 where the divisor is 0."""
    return np.where(below == 0, 0.0, above / np.where(below == 0, 1.0, below))
