"""Independent seeds for the independent users of randomness in a run."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, name: str) -> int:
    """Derive the seed of the user called `name` from the seed of the run."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8]) >> 1
