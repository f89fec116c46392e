"""Rollouts cut along time into chunks of one world each, for models that remember."""

from __future__ import annotations

from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError


def in_chunks(batch: TensorDictBase, length: int) -> TensorDictBase:
    """A rollout `[B, T]`, time last, as `[B * T / length, length]`; no chunk holds steps of two worlds.

    Raises:
        ConfigError: T is no multiple of `length`, so that a chunk would reach into the next world's row.
    """
    steps = batch.batch_size[-1]
    if steps % length:
        fitting = ", ".join(str(number) for number in range(1, steps + 1) if steps % number == 0)
        raise ConfigError(
            f"chunk_length is {length}, and rollouts of {steps} steps cannot be cut into such chunks",
            hint=f"use one of {fitting}, or other training.steps",
        )
    return batch.reshape(-1, length)
