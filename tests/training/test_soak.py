"""The slope that `make soak` reports: found where there is one, and not where there is only noise."""

import numpy as np
from benchmarks.soak import grows, slope

BATCHES = list(range(0, 100_000, 50))


def test_growth_is_found_and_noise_is_not():
    noise = np.random.default_rng(0).normal(0, 1e5, len(BATCHES))
    level = 4e8 + noise
    assert not grows(slope(BATCHES, level), 4e8, 100_000)
    leaking = level + 100 * np.array(BATCHES)
    found = slope(BATCHES, leaking)
    assert found["low"] < 100 < found["high"]
    assert grows(found, 4e8, 100_000)


def test_only_the_second_half_counts():
    warming = np.where(np.arange(len(BATCHES)) < len(BATCHES) // 2, np.arange(len(BATCHES)) * 1e5, 1e8)
    assert slope(BATCHES, warming)["slope"] == 0
