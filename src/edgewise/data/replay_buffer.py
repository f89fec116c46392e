"""A replay buffer on TorchRL's, in memory or in a file, whose state is restored bit for bit."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from tensordict import NestedKey, TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import LazyMemmapStorage, LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import RandomSampler
from torchrl.data.replay_buffers.writers import RoundRobinWriter

from edgewise.data.prioritised import WEIGHT, PrioritisedSampler
from edgewise.data.ragged_ring import Name, RaggedRing
from edgewise.envs.generators import restore_generator
from edgewise.graphs.ragged import Ragged, padded, trimmed
from edgewise.scale.processes.group import ALONE, Group

SNAPSHOT_BYTES = 1 << 26
"""Stored entries up to this size are copied into a state; larger ones are views of the storage."""


class ReplayBuffer:
    """A ring buffer of transitions with uniform or prioritised sampling.

    Args:
        capacity: largest number of transitions; new ones then replace the oldest.
        batch_size: transitions per sample.
        device: of samples, and of a storage in memory.
        storage: `memory`, or `memmap` for a file that may be larger than memory.
        folder: the folder of that file; by default the system's temporary folder.
        prioritised: whether to sample by priority, see `PrioritisedSampler`; otherwise uniformly.
        alpha: exponent of priorities.
        beta: exponent of importance weights.
        seed: random seed of sampling.
        group: processes with a buffer each. Importance weights and the priority of new transitions are those
            of one buffer of all of them.

    Attributes:
        buffer: the underlying buffer of TorchRL.

    Example:
        >>> buffer = ReplayBuffer(1_000, batch_size=4, prioritised=True)
        >>> buffer.extend(TensorDict({"reward": torch.arange(10.0)}, [10]))
        >>> samples = buffer.sample()
        >>> sorted(samples.keys())
        ['index', 'reward', 'weight']
        >>> buffer.update_priorities(samples["index"], torch.rand(4))
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
        group: Group = ALONE,
    ) -> None:
        self.capacity, self.batch_size = capacity, batch_size
        self.prioritised, self.device = prioritised, torch.device(device)
        storage_device = torch.device("cpu") if storage == "memmap" else self.device
        self.generator = torch.Generator(storage_device).manual_seed(seed)
        self.buffer = TensorDictReplayBuffer(
            storage=_memmap_storage(capacity, folder)
            if storage == "memmap"
            else LazyTensorStorage(capacity, device=storage_device),
            sampler=PrioritisedSampler(capacity, alpha=alpha, beta=beta, device=storage_device, group=group)
            if prioritised
            else RandomSampler(),
            writer=RoundRobinWriter(),
            batch_size=batch_size,
            generator=self.generator,
        )
        self._storage_device, self._in_memory = storage_device, storage == "memory"
        self._rings: list[RaggedRing] = []

    def __len__(self) -> int:
        return len(self.buffer)

    @property
    def beta(self) -> float | None:
        """The exponent of importance weights; None without priorities."""
        sampler = self.buffer.sampler
        return sampler.beta if isinstance(sampler, PrioritisedSampler) else None

    @beta.setter
    def beta(self, value: float) -> None:
        if isinstance(self.buffer.sampler, PrioritisedSampler):
            self.buffer.sampler.beta = value

    @property
    def bytes_per_transition(self) -> int:
        """The size of a stored transition in bytes; zero if the buffer is empty."""
        if not len(self):
            return 0
        ragged_bytes = sum(ring.bytes_of(len(self)) for ring in self._rings)
        return sum(value[0].nbytes for _, value in self._entries()) + ragged_bytes // len(self)

    def extend(self, transitions: TensorDictBase) -> None:
        """Store transitions `[M]`; only the last `capacity` of them if there are more."""
        if isinstance(self.buffer.sampler, PrioritisedSampler):
            self.buffer.sampler.share_largest()
        fresh = transitions[-self.capacity :].to(self._storage_device)
        if len(fresh):
            self.buffer.extend(self._write_ragged(fresh))

    def sample(self) -> TensorDictBase:
        """Sample transitions `[batch_size]`, with their `index` int64 and importance `weight` float32."""
        index, extra = self.buffer.sampler.sample(self.buffer.storage, self.batch_size)
        # Several times faster than the advanced indexing of `buffer.sample`, which copies number by number.
        samples = self.buffer.storage._storage._fast_apply(
            lambda value: _plain(value).index_select(0, index), batch_size=[len(index)]
        )
        weight = extra[WEIGHT] if self.prioritised else torch.ones(len(index), device=self._storage_device)
        for ring in self._rings:
            for name, value in ring.read(index).items():
                samples.set(name, value)
        samples.set("index", index).set("weight", weight)
        return samples.to(self.device) if samples.device != self.device else samples

    def update_priorities(self, index: Tensor, priority: Tensor) -> None:
        """Set the priorities `[M]` of the transitions at `index [M]`, such as their absolute errors."""
        if self.prioritised:
            self.buffer.update_priority(index.to(self._storage_device), priority.to(self._storage_device))

    def state_dict(self) -> dict[str, Any]:
        """Return the stored transitions, the write position, the priorities and the random state.

        Entries above `SNAPSHOT_BYTES` are not copied: save them before the next `extend`.
        """
        size, stored = len(self), {}
        for name, value in self._entries():
            part = value[:size]
            stored[name] = part if part.nbytes > SNAPSHOT_BYTES else part.clone()
        return {
            "stored": stored,
            "ragged": {str(place): ring.state_dict(size) for place, ring in enumerate(self._rings)},
            "cursor": self.buffer.writer._cursor,
            "sampler": self.buffer.sampler.state_dict() if size else {},
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next samples are then those of the saved buffer.

        Raises:
            ValueError: the state holds more transitions than `capacity`.
        """
        self.buffer.empty()
        stored = state["stored"]
        is_full = any(len(value) == self.capacity for value in stored.values())
        self._rings = [
            RaggedRing.from_state(self.capacity, ring, oldest=int(state["cursor"]) if is_full else 0)
            for ring in (state.get("ragged") or {}).values()
        ]
        if stored:
            nested = {tuple(name.split(".")): value for name, value in stored.items()}
            size = len(next(iter(stored.values())))
            if size > self.capacity:
                raise ValueError(
                    f"the state holds {size} transitions, more than the capacity {self.capacity}"
                )
            self.buffer.extend(TensorDict(nested, batch_size=[size]).to(self._storage_device))
            self.buffer.sampler.load_state_dict(state["sampler"])
        self.buffer.writer._cursor = int(state["cursor"])
        restore_generator(self.generator, state["generator"])

    def _write_ragged(self, fresh: TensorDictBase) -> TensorDictBase:
        """Write the ragged entries of transitions `[M]` to their rings, and return the others.

        Which entries are ragged is as in the first transitions; those of several steps are stored padded.
        """
        size, entries = len(self), dict(fresh.items(include_nested=True, leaves_only=True))
        if not size and self._in_memory:
            by_slots: dict[int, dict[Name, Ragged]] = {}
            for name, value in entries.items():
                if isinstance(value, Ragged) and value.first.dim() == 1:
                    by_slots.setdefault(value.slots, {})[_path(name)] = value
            self._rings = [RaggedRing(self.capacity, like) for like in by_slots.values()]
        index = (self.buffer.writer._cursor + torch.arange(len(fresh))) % self.capacity
        oldest = (int(index[-1]) + 1) % self.capacity if size + len(fresh) > self.capacity else 0
        stays = bool(size) and len(fresh) < self.capacity
        rest = fresh.copy()
        for ring in self._rings:
            own = {name: entries[name] for name in ring.names}
            values = {
                name: value
                if isinstance(value, Ragged)
                else trimmed(value, place=ring.places[name], batch_dims=1)
                for name, value in own.items()
            }
            ring.write(index, values, oldest=oldest if stays else None)
            rest = rest.exclude(*ring.names)
        return padded(rest)

    def _entries(self) -> list[tuple[str, Tensor]]:
        """Return every stored entry `[capacity, ...]` by name, such as `ego.self`, as a plain tensor."""
        content = self.buffer.storage._storage
        if content is None:
            return []
        found = content.items(include_nested=True, leaves_only=True)
        return sorted(
            (name if isinstance(name, str) else ".".join(name), _plain(value)) for name, value in found
        )


def _memmap_storage(capacity: int, folder: Path | None) -> LazyMemmapStorage:
    """Build a storage in files of its own, which are deleted with it."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return LazyMemmapStorage(
        capacity, scratch_dir=tempfile.mkdtemp(prefix="replay-", dir=folder), auto_cleanup=True
    )


def _path(name: NestedKey) -> Name:
    """Return the name of an entry as a tuple."""
    return (name,) if isinstance(name, str) else tuple(name)


def _plain(value: Tensor) -> Tensor:
    """Return the same memory without the reference to its file that a memory-mapped tensor keeps."""
    return value.as_subclass(Tensor)
