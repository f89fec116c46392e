"""Random streams that go on where they were saved, on the same kind of device or on another."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def go_on(generator: torch.Generator, state: Tensor) -> None:
    """Let a generator draw as the one whose `state` was saved would have.

    A state of another kind of device cannot be taken over, as its size tells: from it a new stream begins,
    the same whenever it begins from this state.
    """
    kept = state.cpu()
    if kept.shape == generator.get_state().shape:
        generator.set_state(kept)
    else:
        digest = hashlib.sha256(kept.numpy().tobytes()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
