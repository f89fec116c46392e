"""A memory of transitions that fits the device at hand, and is the same, bit for bit, after a resume."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import LazyMemmapStorage, LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import RandomSampler
from torchrl.data.replay_buffers.writers import RoundRobinWriter

from edgewise.data.prioritised import WEIGHT, PrioritisedSampler
from edgewise.graphs.generators import go_on

SNAPSHOT_BYTES = 1 << 26
"""Stored entries up to this size are copied into a state; larger ones are given as they are."""


class Replay:
    """A ring of transitions: the newest replace the oldest once it is full.

    Args:
        capacity: transitions that are kept.
        batch_size: transitions in a sample.
        device: where samples live; a store in memory lives there too.
        storage: `memory`, or `memmap` for a file that may be larger than memory.
        folder: where that file goes; the system's temporary folder if not given.
        prioritised: whether to draw by priority, see `PrioritisedSampler`; otherwise all are alike likely.
        alpha: how much priorities matter.
        beta: how much weights make up for it.
        seed: of what is drawn.

    Attributes:
        buffer: TorchRL's buffer inside.

    Example:
        >>> replay = Replay(1_000_000, batch_size=256, prioritised=True)
        >>> replay.extend(compact(agent_transitions(batch, steps=3, discount=0.99)))
        >>> sample = replay.sample()
        >>> replay.update_priorities(sample["index"], errors)
    """

    def __init__(
        self,
        capacity: int,
        *,
        batch_size: int,
        device: torch.device | str = "cpu",
        storage: Literal["memory", "memmap"] = "memory",
        folder: Path | None = None,
        prioritised: bool = False,
        alpha: float = 0.5,
        beta: float = 0.4,
        seed: int = 0,
    ) -> None:
        self.capacity, self.prioritised, self.device = capacity, prioritised, torch.device(device)
        home = torch.device("cpu") if storage == "memmap" else self.device
        self.generator = torch.Generator(home).manual_seed(seed)
        self.buffer = TensorDictReplayBuffer(
            storage=_mapped(capacity, folder)
            if storage == "memmap"
            else LazyTensorStorage(capacity, device=home),
            sampler=PrioritisedSampler(capacity, alpha=alpha, beta=beta, device=home)
            if prioritised
            else RandomSampler(),
            writer=RoundRobinWriter(),
            batch_size=batch_size,
            generator=self.generator,
        )
        self._home = home

    def __len__(self) -> int:
        return len(self.buffer)

    @property
    def beta(self) -> float | None:
        """How much weights make up for priorities; None where there are none."""
        sampler = self.buffer.sampler
        return sampler.beta if isinstance(sampler, PrioritisedSampler) else None

    @beta.setter
    def beta(self, value: float) -> None:
        if isinstance(self.buffer.sampler, PrioritisedSampler):
            self.buffer.sampler.beta = value

    @property
    def bytes_per_transition(self) -> int:
        """Bytes of one stored transition; zero before the first."""
        return sum(value[0].nbytes for _, value in self._entries()) if len(self) else 0

    def extend(self, transitions: TensorDictBase) -> None:
        """Store transitions `[M]`, the last `capacity` of them if there are more."""
        fresh = transitions[-self.capacity :].to(self._home)
        if len(fresh):
            self.buffer.extend(fresh.copy())

    def sample(self) -> TensorDictBase:
        """Transitions `[batch_size]` with their `index` int64 and `weight` float32."""
        drawn = self.buffer.sample()
        if self.prioritised:
            drawn.rename_key_(WEIGHT, "weight")
        else:
            drawn.set("weight", torch.ones(drawn.batch_size, device=self._home))
        return drawn.to(self.device) if drawn.device != self.device else drawn

    def update_priorities(self, index: Tensor, priority: Tensor) -> None:
        """Say how much there is still to learn from the transitions at `index [M]`, such as their errors."""
        if self.prioritised:
            self.buffer.update_priority(index.to(self._home), priority.to(self._home))

    def state_dict(self) -> dict[str, Any]:
        """What is stored, where the next goes, and what is drawn next.

        Large entries are not copied: write them down before the next `extend`.
        """
        size, stored = len(self), {}
        for name, value in self._entries():
            part = value[:size]
            stored[name] = part if part.nbytes > SNAPSHOT_BYTES else part.clone()
        return {
            "stored": stored,
            "cursor": self.buffer.writer._cursor,
            "sampler": self.buffer.sampler.state_dict() if size else {},
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on as the replay that gave `state` would have."""
        self.buffer.empty()
        stored = state["stored"]
        if stored:
            nested = {tuple(name.split(".")): value for name, value in stored.items()}
            size = len(next(iter(stored.values())))
            if size > self.capacity:
                raise ValueError(f"the replay holds {size} transitions, here is room for {self.capacity}")
            self.buffer.extend(TensorDict(nested, batch_size=[size]).to(self._home))
            self.buffer.sampler.load_state_dict(state["sampler"])
        self.buffer.writer._cursor = int(state["cursor"])
        go_on(self.generator, state["generator"])

    def _entries(self) -> list[tuple[str, Tensor]]:
        """Every stored entry `[capacity, ...]` by name, such as `ego.self`, as a plain tensor."""
        content = self.buffer.storage._storage
        if content is None:
            return []
        found = content.items(include_nested=True, leaves_only=True)
        return sorted(
            (name if isinstance(name, str) else ".".join(name), _plain(value)) for name, value in found
        )


def _mapped(capacity: int, folder: Path | None) -> LazyMemmapStorage:
    """A store in files of its own, which go when it does."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return LazyMemmapStorage(
        capacity, scratch_dir=tempfile.mkdtemp(prefix="replay-", dir=folder), auto_cleanup=True
    )


def _plain(value: Tensor) -> Tensor:
    """The same memory without the file that a mapped tensor remembers."""
    return value.as_subclass(Tensor)
