"""Restore random generators, also from a state that was saved on another kind of device."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def restore_generator(generator: torch.Generator, state: Tensor) -> None:
    """Set a generator to a saved `state`, so that it draws what the saved one would have drawn.

    A state from another kind of device, which has another size, cannot be restored. It is hashed into a seed
    instead, so that the same state always gives the same random numbers.
    """
    saved = state.cpu()
    if saved.shape == generator.get_state().shape:
        generator.set_state(saved)
    else:
        digest = hashlib.sha256(saved.numpy().tobytes()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
