"""Reductions over the processes of one machine through memory that they share.

Gloo sends tensors through sockets and wakes a thread for every message, which takes milliseconds for some
hundred kilobytes. Here every process writes its values, waits for the others and adds up all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from edgewise.scale.processes.barrier import CAPACITY, PARTS, Barrier

Operation = Callable[..., Tensor]
"""A function of two tensors with an argument `out`, such as `torch.add`."""


class SharedMemory:
    """Combines tensors of all processes; every process must call `reduce`, in the same order.

    Args:
        barrier: where the processes wait for each other.
    """

    def __init__(self, barrier: Barrier) -> None:
        self._barrier, self._turn = barrier, 0
        flat = torch.frombuffer(barrier.memory, dtype=torch.uint8)
        self._memory = flat.view(PARTS, barrier.size, CAPACITY)

    def reduce(self, values: Tensor, operation: Operation) -> None:
        """Replace `values`, contiguous on the CPU, by their combination over all processes, in place.

        Processes are combined in the order of their ranks, so the result is the same to the last bit in each.
        """
        flat = values.view(-1)
        for chunk in flat.split(CAPACITY // flat.element_size()):
            self._reduce(chunk, operation)

    def _reduce(self, chunk: Tensor, operation: Operation) -> None:
        size = chunk.numel() * chunk.element_size()
        parts = self._memory[self._turn, :, :size].view(chunk.dtype)
        parts[self._barrier.rank].copy_(chunk)
        # One wait is enough: who writes to this part again has waited for the other part in between, and so
        # for everyone who still reads this one.
        self._barrier.wait()
        operation(parts[0], parts[1], out=chunk)
        for part in parts[2:]:
            operation(chunk, part, out=chunk)
        self._turn = (self._turn + 1) % PARTS
