"""The slope that `make soak` reports: found where there is one, and not where there is only noise."""

import numpy as np
import torch
from benchmarks.soak import Sample, grows, slope

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


def test_a_sample_counts_what_is_held_and_not_what_was_given_back():
    before = Sample.now(0)
    with open("/dev/null"):
        tensors, objects = [torch.zeros(1000) for _ in range(1000)], [{} for _ in range(10_000)]
        during = Sample.now(0)
    del tensors, objects
    after = Sample.now(0)
    assert 4e6 < during.in_use - before.in_use < 6e6
    assert 10_000 <= during.blocks - before.blocks < 30_000
    assert during.files - before.files == 1
    assert abs(after.in_use - before.in_use) < 2e5
    assert abs(after.blocks - before.blocks) < 500
    assert after.files == before.files
