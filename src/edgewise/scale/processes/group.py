"""A group of processes that train one run: sums, means and messages over all of them.

Every process (a rank) has equal weights, and its share of the worlds and of the collected data. `Group` is
the group of one process, in which every method returns its argument. `Ranks` computes the same over several
processes with `torch.distributed`, or through shared memory where all of them are on one machine. Messages
are JSON: nothing is pickled.
"""

from __future__ import annotations

import atexit
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed, nn

from edgewise.scale.processes.barrier import Barrier, descriptors_of_this_process, lost_connection
from edgewise.scale.processes.ranks import Place, place_of_this_process
from edgewise.scale.processes.shared_memory import Operation, SharedMemory

TIMEOUT = timedelta(hours=4)
"""Longest wait for another process, such as for the first one while it evaluates."""


class Group:
    """The group of a single process; every method returns its argument unchanged.

    Attributes:
        rank: number of this process; the one with rank 0 evaluates, logs and saves.
        size: number of processes.

    Example:
        >>> Group().sum(torch.tensor(3.0))
        tensor(3.)
    """

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process has rank 0."""
        return self.rank == 0

    def part(self, total: int) -> int:
        """Return the share of every process of `total`, rounded down, at least 1."""
        return max(1, total // self.size)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over all processes, any shape; on the device of `values`."""
        return values

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over all processes, any shape."""
        return values

    def max(self, values: Tensor) -> Tensor:
        """Return the maximum over all processes, any shape."""
        return values

    def min(self, values: Tensor) -> Tensor:
        """Return the minimum over all processes, any shape."""
        return values

    def weights(self, counts: Tensor) -> Tensor:
        """Return the weights of this process's means over `counts` entries, same shape.

        The mean over processes of means with these weights is the mean over all entries of all processes.
        A weight is `counts * size / total`; zero if no process has an entry.
        """
        return torch.ones_like(counts, dtype=torch.float32)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average the gradients of `parameters` over all processes in place, with a single reduction.

        A parameter without a gradient counts as one with a gradient of zero.
        """

    def broadcast(self, message: Any) -> Any:
        """Return the message of rank 0: numbers, strings, None, and lists and dicts of them."""
        return message

    def gather(self, message: Any) -> list[Any]:
        """Return the messages of all processes in the order of their ranks."""
        return [message]


class Reduction(NamedTuple):
    """A way to combine tensors: as `torch.distributed` names it, and as a function of two tensors."""

    name: Any
    operation: Operation


SUM = Reduction(distributed.ReduceOp.SUM, torch.add)
MAX = Reduction(distributed.ReduceOp.MAX, torch.maximum)
MIN = Reduction(distributed.ReduceOp.MIN, torch.minimum)


class Ranks(Group):
    """The group of several processes, over the default group of `torch.distributed`.

    Every method must be called by all processes, in the same order.

    Args:
        memory: reduces tensors on the CPU where all processes are on one machine.

    Raises:
        ProcessLost: another process has ended, or has not answered within `TIMEOUT`.
    """

    def __init__(self, memory: SharedMemory | None = None) -> None:
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        self._memory = memory

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over all processes, any shape; on the device of `values`."""
        return self._reduced(values, SUM)

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over all processes, any shape."""
        return self.sum(values) / self.size

    def max(self, values: Tensor) -> Tensor:
        """Return the maximum over all processes, any shape."""
        return self._reduced(values, MAX)

    def min(self, values: Tensor) -> Tensor:
        """Return the minimum over all processes, any shape."""
        return self._reduced(values, MIN)

    def weights(self, counts: Tensor) -> Tensor:
        """Return the weights of this process's means over `counts` entries, same shape."""
        counts = counts.double()
        return (counts * self.size / self.sum(counts).clamp_min(1)).float()

    @torch.no_grad()
    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Average the gradients of `parameters` over all processes in place, with a single reduction."""
        gradients = [_gradient(parameter) for parameter in parameters]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self._reduce(flat, SUM)
        parts = flat.div_(self.size).split([gradient.numel() for gradient in gradients])
        torch._foreach_copy_(gradients, [part.view_as(to) for part, to in zip(parts, gradients, strict=True)])

    def broadcast(self, message: Any) -> Any:
        """Return the message of rank 0."""
        content = json.dumps(message).encode() if self.first else b""
        length = torch.tensor(len(content))
        with _connected():
            distributed.broadcast(length, src=0)
            buffer = _as_bytes(content, int(length))
            distributed.broadcast(buffer, src=0)
        return json.loads(bytes(buffer.tolist()))

    def gather(self, message: Any) -> list[Any]:
        """Return the messages of all processes in the order of their ranks."""
        content = json.dumps(message).encode()
        lengths = self._gather(torch.tensor([len(content)]))
        longest = max(int(length) for length in lengths)
        buffers = self._gather(_as_bytes(content, longest))
        found = zip(buffers, lengths, strict=True)
        return [json.loads(bytes(buffer[: int(length)].tolist())) for buffer, length in found]

    def _reduced(self, values: Tensor, how: Reduction) -> Tensor:
        result = values.detach().clone(memory_format=torch.contiguous_format)
        self._reduce(result, how)
        return result

    def _reduce(self, values: Tensor, how: Reduction) -> None:
        """Combine contiguous `values` of all processes in place."""
        if self._memory is not None and values.device.type == "cpu":
            self._memory.reduce(values, how.operation)
            return
        with _connected():
            distributed.all_reduce(values, op=how.name)

    def _gather(self, values: Tensor) -> Sequence[Tensor]:
        parts = [torch.empty_like(values) for _ in range(self.size)]
        with _connected():
            distributed.all_gather(parts, values)
        return parts


ALONE = Group()
"""The group of a run that a single process trains."""


@cache
def this_group() -> Group:
    """Return the group of this process, as torchrun or `edgewise train --processes` started it.

    The first call connects the processes; each of them must make it.
    """
    place = place_of_this_process()
    if place is None or place.size == 1:
        return ALONE
    if place.rank > 0:
        logging.getLogger("edgewise").setLevel(logging.ERROR)
    with _connected():
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            init_method=place.rendezvous,
            rank=place.rank,
            world_size=place.size,
            timeout=TIMEOUT,
        )
    atexit.register(_disconnect)
    return Ranks(_shared_memory(place))


def _shared_memory(place: Place) -> SharedMemory | None:
    descriptors = descriptors_of_this_process()
    if descriptors is None:
        return None
    timeout = TIMEOUT.total_seconds()
    return SharedMemory(Barrier(descriptors, rank=place.rank, size=place.size, timeout=timeout))


def device_of(device: str, place: Place | None) -> str:
    """Return the device of a process: with several processes and `cuda`, each has a GPU of its own."""
    return device if place is None or device != "cuda" else f"cuda:{place.local_rank}"


def _disconnect() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _as_bytes(content: bytes, length: int) -> Tensor:
    """Return bytes as a tensor `[length]` uint8, padded with zeros."""
    return torch.frombuffer(bytearray(content.ljust(max(length, 1), b"\0")), dtype=torch.uint8)


@contextmanager
def _connected() -> Iterator[None]:
    """Raise ProcessLost in place of the error of a connection that has ended."""
    try:
        yield
    except RuntimeError as error:
        raise lost_connection() from error
