"""Save and restore the states of all global random generators."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def seed(number: int) -> None:
    """Seed every global generator with `number`."""
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)


def capture() -> dict[str, Any]:
    """Return the states of the global generators of Python, NumPy and torch, including those of GPUs."""
    generator: dict[str, Any] = dict(np.random.get_state(legacy=False))
    words = generator.pop("state")
    return {
        "python": random.getstate(),
        "numpy": {
            **generator,
            "key": torch.from_numpy(words["key"].astype(np.int64)),
            "pos": int(words["pos"]),
        },
        "torch": torch.get_rng_state(),
        "cuda": list(torch.cuda.get_rng_state_all()) if torch.cuda.is_available() else [],
    }


def restore(state: Mapping[str, Any]) -> None:
    """Restore the states from `capture`; states of GPUs that do not exist are ignored."""
    random.setstate(state["python"])
    generator = dict(state["numpy"])
    words = {"key": generator.pop("key").numpy().astype(np.uint32), "pos": generator.pop("pos")}
    np.random.set_state({**generator, "state": words})
    torch.set_rng_state(state["torch"])
    for index, kept in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(kept, index)


@contextmanager
def untouched() -> Iterator[None]:
    """Restore the global generators on exit."""
    before = capture()
    try:
        yield
    finally:
        restore(before)
