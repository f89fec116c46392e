"""Prioritised sampling (https://arxiv.org/abs/1511.05952) for TorchRL's buffers, without compiled extensions.

On a CPU the priorities are in a `SumTree`. On a GPU a cumulative sum over all priorities is faster than a
tree and needs no synchronisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torchrl.data.replay_buffers.samplers import Sampler
from torchrl.data.replay_buffers.storages import Storage

from edgewise.config import sources
from edgewise.data.sum_tree import SumTree
from edgewise.scale.processes.group import ALONE, Group

FILE = "priorities.safetensors"
WEIGHT = "priority_weight"


class PrioritisedSampler(Sampler):
    """Samples item i with probability P(i) = pᵢ^α / Σ p^α, with importance weights.

    Sampling is stratified: one draw from each of `batch_size` equal parts of the total. The weight of an item
    is (N P(i))^-β, divided by the largest weight in its batch. New items get the largest priority so far, so
    that each is sampled soon. If an update contains an item twice, the larger priority is kept.

    Args:
        capacity: of the storage.
        alpha: α, the exponent of priorities; 0 samples uniformly.
        beta: β, the exponent of importance weights; 1 corrects the bias fully.
        floor: added to every priority, so that every item can be sampled.
        device: of the storage.
        group: processes with a storage each, which sample equal parts of a batch. An item of a process with
            the total S is then sampled with a probability in proportion to pᵢ^α / S, and weighted by it.

    Attributes:
        beta: may be changed at any time.

    Example:
        >>> from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
        >>> sampler = PrioritisedSampler(1_000_000, alpha=0.5, beta=0.4)
        >>> storage = LazyTensorStorage(1_000_000)
        >>> buffer = TensorDictReplayBuffer(storage=storage, sampler=sampler, batch_size=256)
    """

    def __init__(
        self,
        capacity: int,
        *,
        alpha: float = 0.5,
        beta: float = 0.4,
        floor: float = 1e-6,
        device: torch.device | str = "cpu",
        group: Group = ALONE,
    ) -> None:
        self._group = group
        self.alpha, self.beta, self.floor = alpha, beta, floor
        self._capacity, self._device = capacity, torch.device(device)
        self._table: TreePriorities | TablePriorities
        self._largest: Tensor
        self._filled: int
        self._empty()

    def sample(self, storage: Storage, batch_size: int) -> tuple[Tensor, dict[str, Any]]:
        """Sample indices `[batch_size]` int64, with their weights as `priority_weight`, float32."""
        if len(storage) == 0:
            raise RuntimeError("nothing has been stored yet, so nothing can be sampled")
        strata = torch.arange(batch_size, device=self._device)
        within = torch.rand(batch_size, generator=self._rng, dtype=torch.float64, device=self._device)
        index = self._table.find((strata + within) / batch_size)
        chosen = self._table.at(index)
        if self._group.size > 1:
            chosen = chosen / self._table.total
        return index, {WEIGHT: (chosen / self._group.min(chosen.min())).pow(-self.beta).float()}

    def share_largest(self) -> None:
        """Let new items get the largest priority of all processes; each of them must call this."""
        self._largest = self._group.max(self._largest)

    def add(self, index: int) -> None:
        """Give a new item the largest priority so far."""
        self.extend(torch.as_tensor([index], device=self._device))

    def extend(self, index: Tensor) -> None:
        """Give new items `[M]` the largest priority so far."""
        index = index.to(self._device)
        self._filled = min(self._capacity, self._filled + len(index))
        self._table.set(index, self._largest.expand(len(index)))

    def update_priority(
        self,
        index: int | Tensor,
        priority: float | Tensor,
        *,
        storage: Storage | None = None,  # noqa: ARG002 - TorchRL's signature
    ) -> None:
        """Set the priorities `[M]` of items `[M]`, such as their absolute errors."""
        index = torch.as_tensor(index, device=self._device).reshape(-1)
        given = torch.as_tensor(priority, device=self._device).detach().abs().double().reshape(-1)
        raised = (given + self.floor).pow(self.alpha).expand(len(index))
        self._largest = torch.maximum(self._largest, raised.max())
        self._table.set(index, raised)

    @property
    def probabilities(self) -> Tensor:
        """P(i) of every slot, `[capacity]` float64; zero where nothing is stored."""
        values = self._table.values
        return values / values.sum()

    def state_dict(self) -> dict[str, Any]:
        """Return the priorities of the stored items."""
        return {"priorities": self._table.values[: self._filled].clone(), "largest": self._largest.clone()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state; the next samples are then those of the saved sampler."""
        self._empty()
        priorities = state_dict["priorities"].to(self._device)
        self._table.fill(priorities)
        self._filled, self._largest = len(priorities), state_dict["largest"].to(self._device)

    def dumps(self, path: str | Path) -> None:
        """Write the priorities to a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.cpu() for name, value in self.state_dict().items()}, folder / FILE)

    def loads(self, path: str | Path) -> None:
        """Read the priorities that `dumps` wrote."""
        self.load_state_dict(load_file(sources.check(Path(path) / FILE)))

    def _empty(self) -> None:
        on_cpu = self._device.type == "cpu"
        self._table = (
            TreePriorities(self._capacity) if on_cpu else TablePriorities(self._capacity, self._device)
        )
        self._largest = torch.ones((), dtype=torch.float64, device=self._device)
        self._filled = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self._capacity}, alpha={self.alpha}, beta={self.beta})"


class TreePriorities:
    """Priorities in a sum tree, on a CPU."""

    def __init__(self, capacity: int) -> None:
        self._tree = SumTree(capacity)

    @property
    def values(self) -> Tensor:
        """All priorities, `[capacity]`."""
        return torch.from_numpy(self._tree.leaves)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return self._tree.total

    def set(self, index: Tensor, value: Tensor) -> None:
        """Set the priorities at `index [M]`; of duplicates the largest is kept."""
        self._tree.set(index.numpy(), value.numpy())

    def fill(self, values: Tensor) -> None:
        """Set the first priorities, and all others to zero."""
        self._tree.fill(values.numpy())

    def find(self, share: Tensor) -> Tensor:
        """Return the first index at which the cumulative sum exceeds `share [M]` of the total."""
        return torch.from_numpy(self._tree.find(share.numpy()))

    def at(self, index: Tensor) -> Tensor:
        """Return the priorities at `index [M]`."""
        return self.values[index]


class TablePriorities:
    """Priorities in a plain tensor on any device, with a cumulative sum for every sample."""

    def __init__(self, capacity: int, device: torch.device) -> None:
        self.values = torch.zeros(capacity, dtype=torch.float64, device=device)

    @property
    def total(self) -> Tensor:
        """The sum of all priorities, 0-d."""
        return self.values.sum()

    def set(self, index: Tensor, value: Tensor) -> None:
        """Set the priorities at `index [M]`; of duplicates the largest is kept."""
        self.values.index_fill_(0, index, 0.0)
        self.values.scatter_reduce_(0, index, value, "amax")

    def fill(self, values: Tensor) -> None:
        """Set the first priorities, and all others to zero."""
        self.values.zero_()
        self.values[: len(values)] = values

    def find(self, share: Tensor) -> Tensor:
        """Return the first index at which the cumulative sum exceeds `share [M]` of the total."""
        running = self.values.cumsum(0)
        return torch.searchsorted(running, share * running[-1], right=True).clamp(max=len(running) - 1)

    def at(self, index: Tensor) -> Tensor:
        """Return the priorities at `index [M]`."""
        return self.values[index]
