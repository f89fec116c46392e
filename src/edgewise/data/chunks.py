"""Split rollouts into chunks of consecutive steps, for recurrent models."""

from __future__ import annotations

from tensordict import TensorDictBase


def split_into_chunks(batch: TensorDictBase, max_length: int) -> TensorDictBase:
    """Reshape a rollout `[B, T]`, time last, to chunks `[B * T / L, L]` of one world each.

    L is the largest divisor of T that is at most `max_length`, so that all chunks have the same length.

    Example:
        >>> from tensordict import TensorDict
        >>> split_into_chunks(TensorDict({}, [64, 25]), 10).batch_size
        torch.Size([320, 5])
    """
    steps = batch.batch_size[-1]
    length = next(number for number in range(min(max_length, steps), 0, -1) if steps % number == 0)
    return batch.reshape(-1, length)
