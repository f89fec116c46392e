"""Every global random generator, as a state that a checkpoint can hold and put back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def seed(number: int) -> None:
    """Start every global generator from `number`."""
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)


def capture() -> dict[str, Any]:
    """The states of Python's, NumPy's and torch's global generators, those of GPUs included."""
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
    """Put back what `capture` gave, as far as there are as many GPUs."""
    random.setstate(state["python"])
    generator = dict(state["numpy"])
    words = {"key": generator.pop("key").numpy().astype(np.uint32), "pos": generator.pop("pos")}
    np.random.set_state({**generator, "state": words})
    torch.set_rng_state(state["torch"])
    for index, kept in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(kept, index)


@contextmanager
def untouched() -> Iterator[None]:
    """Whatever is drawn inside, the global generators continue outside as if nothing had been."""
    before = capture()
    try:
        yield
    finally:
        restore(before)
