"""Rollouts cut along time into chunks of one world each, for models that remember."""

from __future__ import annotations

from tensordict import TensorDictBase


def in_chunks(batch: TensorDictBase, longest: int) -> TensorDictBase:
    """A rollout `[B, T]`, time last, as `[B * T / L, L]`; no chunk holds steps of two worlds.

    L is the greatest divisor of T that is not above `longest`, so that chunks are all of one length and none
    reaches into the next world's row: 5 of 25 steps where 10 are asked for.
    """
    steps = batch.batch_size[-1]
    length = next(number for number in range(min(longest, steps), 0, -1) if steps % number == 0)
    return batch.reshape(-1, length)
