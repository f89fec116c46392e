"""A device whose tensors live in this machine's memory, but which a program takes for a real one.

Operations on it run on the CPU and give real values. Mixing devices raises, as on CUDA. Every operation in
which the host would wait for a real device is recorded, with the function of edgewise that asked for it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import edgewise

aten = torch.ops.aten
SOURCE = Path(edgewise.__file__).parent
READS = {
    aten._local_scalar_dense,
    aten.nonzero,
    aten.masked_select,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten.equal,
    aten.is_nonzero,
    aten.bincount,
}
"""Operations that give a number to the host, or whose shape it must know."""
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
ACROSS = {aten.copy_, aten._to_copy, *INDEXING}
"""Operations that take tensors of two devices, and wait for the copy."""


class DeviceTensor(torch.Tensor):
    """A tensor of the simulated device, around a tensor of the CPU."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw, device):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.size(),
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=device,
        )
        made.raw = raw
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return SimulatedDevice.current.run(function, args, kwargs or {})

    def tolist(self):
        return self.cpu().tolist()

    def numpy(self, *, force=False):
        if not force:
            raise TypeError("a tensor of another device cannot be converted to numpy")
        return self.detach().cpu().numpy()

    def __repr__(self):
        return f"DeviceTensor({self.raw!r})"


class SimulatedDevice(TorchDispatchMode):
    """Runs operations on the simulated device, and records in `waits` where the host would wait for it."""

    current: SimulatedDevice

    def __init__(self, device):
        super().__init__()
        self.device, self.recording = torch.device(device), False
        self.waits: Counter[str] = Counter()
        SimulatedDevice.current = self

    def __enter__(self):
        # `torch.tensor(numbers, device=...)` makes a tensor of the CPU and copies it.
        self._lifts_cpu_only = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)
        return super().__enter__()

    def __exit__(self, *error):
        torch._C._set_only_lift_cpu_tensors(self._lifts_cpu_only)
        return super().__exit__(*error)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return self.run(function, args, kwargs or {})

    def run(self, function, args, kwargs):
        packet = function.overloadpacket
        tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.Tensor)]
        ours = [each for each in tensors if isinstance(each, DeviceTensor)]
        named = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.device)]
        to_device = any(each.type == self.device.type for each in named)
        if not ours and not to_device:
            return function(*args, **kwargs)
        others = [each for each in tensors if not isinstance(each, DeviceTensor) and each.dim() > 0]
        to_host = bool(named) and not to_device
        if self.recording and _waits(packet, args, kwargs, across=bool(others) or not ours, to_host=to_host):
            self.waits[f"{_asked_by()} {packet.__name__}"] += 1
        if ours and others and packet not in ACROSS:
            raise RuntimeError(f"{function} mixes devices: cpu and {self.device}")
        raw_args, raw_kwargs = tree_map(self._unwrapped, (args, kwargs))
        result = function(*raw_args, **raw_kwargs)
        if packet is aten._to_copy and to_host:
            return result
        if packet is aten.copy_ and not isinstance(args[0], DeviceTensor):
            return args[0]
        known = {id(each.raw): each for each in ours}
        return tree_map(lambda each: self._wrapped(each, known), result)

    def _unwrapped(self, value):
        if isinstance(value, DeviceTensor):
            return value.raw
        if isinstance(value, torch.device) and value.type == self.device.type:
            return torch.device("cpu")
        return value

    def _wrapped(self, value, known):
        if not isinstance(value, torch.Tensor):
            return value
        return known.get(id(value)) if id(value) in known else DeviceTensor(value, self.device)

    @contextmanager
    def recorded(self) -> Iterator[Counter[str]]:
        """Record waits within the block, and give them."""
        self.waits, self.recording = Counter(), True
        try:
            yield self.waits
        finally:
            self.recording = False


def _waits(packet, args, kwargs, *, across, to_host):
    """Return whether the host waits for a device in this operation."""
    if packet in INDEXING and any(each is not None and each.dtype == torch.bool for each in args[1]):
        return packet is aten.index or args[2].numel() > 1  # one number is written by a mask alone
    if packet is aten.repeat_interleave:
        return kwargs.get("output_size") is None
    return packet in READS or (
        packet in ACROSS and (across or to_host) and not kwargs.get("non_blocking", False)
    )


def _asked_by():
    """Return file and function of edgewise that is innermost on the stack."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            return f"{path.relative_to(SOURCE).as_posix()}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "elsewhere"
