"""What the trainer asks of everything that collects batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tensordict import TensorDictBase


class Resumable(Protocol):
    """An object whose state a checkpoint holds: nested dicts of tensors, numbers and strings."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return everything that later steps depend on; large tensors are not copied."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> object:
        """Restore `state`."""


class Collector(Resumable, Protocol):
    """Collects batches from the training environment."""

    def collect(self) -> TensorDictBase:
        """Return the next batch, `[num_envs, T]`."""
