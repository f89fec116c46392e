"""Prioritised sampling (https://arxiv.org/abs/1511.05952) for TorchRL's buffers, without compiled extensions.

On a CPU the priorities live in a `SumTree`; on a GPU a running sum over all of them costs less than to follow
a tree, and waits for nothing.
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

from edgewise.data.sum_tree import SumTree

FILE = "priorities.safetensors"
WEIGHT = "priority_weight"


class PrioritisedSampler(Sampler):
    """Draws item i with probability P(i) = pᵢ^α / Σ p^α, and says how much it should count.

    The batch is drawn in strata: one draw from each of as many equal parts of the total. The weight of an
    item is (N P(i))^-β over the largest such weight in its batch. New items get the largest priority ever
    seen, so that each is drawn soon. Where an update names an item twice, the larger priority holds.

    Args:
        capacity: of the storage.
        alpha: how much priorities matter; 0 draws all alike.
        beta: how much weights make up for it; 1 fully.
        floor: added to every priority, so that no item is forgotten.
        device: of the storage.

    Attributes:
        beta: may be changed at any time.

    Example:
        >>> sampler = PrioritisedSampler(1_000_000, alpha=0.5, beta=0.4)
        >>> TensorDictReplayBuffer(storage=LazyTensorStorage(1_000_000), sampler=sampler, batch_size=256)
    """

    def __init__(
        self,
        capacity: int,
        *,
        alpha: float = 0.5,
        beta: float = 0.4,
        floor: float = 1e-6,
        device: torch.device | str = "cpu",
    ) -> None:
        self.alpha, self.beta, self.floor = alpha, beta, floor
        self._capacity, self._device = capacity, torch.device(device)
        self._table: Tree | Table
        self._largest: Tensor
        self._filled: int
        self._empty()

    def sample(self, storage: Storage, batch_size: int) -> tuple[Tensor, dict[str, Any]]:
        """Indices `[batch_size]` int64, and their weights as `priority_weight`, float32."""
        if len(storage) == 0:
            raise RuntimeError("nothing has been stored yet, so nothing can be drawn")
        strata = torch.arange(batch_size, device=self._device)
        within = torch.rand(batch_size, generator=self._rng, dtype=torch.float64, device=self._device)
        index = self._table.find((strata + within) / batch_size)
        chosen = self._table.at(index)
        return index, {WEIGHT: (chosen / chosen.min()).pow(-self.beta).float()}

    def add(self, index: int) -> None:
        """Give a new item the largest priority seen."""
        self.extend(torch.as_tensor([index], device=self._device))

    def extend(self, index: Tensor) -> None:
        """Give new items `[M]` the largest priority seen."""
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
        """Give items `[M]` priorities `[M]`, such as the sizes of their errors."""
        index = torch.as_tensor(index, device=self._device).reshape(-1)
        given = torch.as_tensor(priority, device=self._device).detach().abs().double().reshape(-1)
        raised = (given + self.floor).pow(self.alpha).expand(len(index))
        self._largest = torch.maximum(self._largest, raised.max())
        self._table.set(index, raised)

    @property
    def probabilities(self) -> Tensor:
        """P(i) of every place, `[capacity]` float64; zero where nothing is stored."""
        values = self._table.values
        return values / values.sum()

    def state_dict(self) -> dict[str, Any]:
        """The priorities of what is stored."""
        return {"priorities": self._table.values[: self._filled].clone(), "largest": self._largest.clone()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Draw as the sampler that gave `state_dict` would."""
        self._empty()
        kept = state_dict["priorities"].to(self._device)
        self._table.fill(kept)
        self._filled, self._largest = len(kept), state_dict["largest"].to(self._device)

    def dumps(self, path: str | Path) -> None:
        """Write the priorities to a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.cpu() for name, value in self.state_dict().items()}, folder / FILE)

    def loads(self, path: str | Path) -> None:
        """Read what `dumps` wrote."""
        self.load_state_dict(load_file(Path(path) / FILE))

    def _empty(self) -> None:
        on_cpu = self._device.type == "cpu"
        self._table = Tree(self._capacity) if on_cpu else Table(self._capacity, self._device)
        self._largest = torch.ones((), dtype=torch.float64, device=self._device)
        self._filled = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self._capacity}, alpha={self.alpha}, beta={self.beta})"


class Tree:
    """Priorities in a sum tree, in the memory of the CPU."""

    def __init__(self, capacity: int) -> None:
        self._tree = SumTree(capacity)

    @property
    def values(self) -> Tensor:
        """All of them, `[capacity]`."""
        return torch.from_numpy(self._tree.leaves)

    def set(self, index: Tensor, value: Tensor) -> None:
        """Change those at `index [M]`; the largest of several for one place holds."""
        self._tree.set(index.numpy(), value.numpy())

    def fill(self, values: Tensor) -> None:
        """Change the first of them, and set the others to zero."""
        self._tree.fill(values.numpy())

    def find(self, share: Tensor) -> Tensor:
        """Where the running sum first exceeds `share [M]` of the total."""
        return torch.from_numpy(self._tree.find(share.numpy()))

    def at(self, index: Tensor) -> Tensor:
        """Those at `index [M]`."""
        return self.values[index]


class Table:
    """The same in a plain tensor on any device, summed up for every draw."""

    def __init__(self, capacity: int, device: torch.device) -> None:
        self.values = torch.zeros(capacity, dtype=torch.float64, device=device)

    def set(self, index: Tensor, value: Tensor) -> None:
        """Change those at `index [M]`; the largest of several for one place holds."""
        self.values.index_fill_(0, index, 0.0)
        self.values.scatter_reduce_(0, index, value, "amax")

    def fill(self, values: Tensor) -> None:
        """Change the first of them, and set the others to zero."""
        self.values.zero_()
        self.values[: len(values)] = values

    def find(self, share: Tensor) -> Tensor:
        """Where the running sum first exceeds `share [M]` of the total."""
        running = self.values.cumsum(0)
        return torch.searchsorted(running, share * running[-1], right=True).clamp(max=len(running) - 1)

    def at(self, index: Tensor) -> Tensor:
        """Those at `index [M]`."""
        return self.values[index]
