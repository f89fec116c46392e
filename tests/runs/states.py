"""States that a checkpoint must bring back bit for bit, and the comparison that says so."""

import multiprocessing
import resource
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from hypothesis import strategies as st
from torch import Tensor

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
]


def same(left, right) -> bool:
    """Equal in structure, type and every bit."""
    if isinstance(left, Tensor):
        return (
            isinstance(right, Tensor)
            and left.dtype == right.dtype
            and left.shape == right.shape
            and raw(left) == raw(right)
        )
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def raw(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def in_a_new_process(function: Callable[[Path], None], folder: Path) -> None:
    """Call `function(folder)` in a process whose heap holds no freed memory to reuse."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == 0


@contextmanager
def little_memory(extra: int) -> Iterator[None]:
    """At most `extra` bytes of private memory beyond what the process has; mapped files do not count."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmData"))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(line.split()[1]) * 1024 + extra, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@st.composite
def tensors(draw) -> Tensor:
    """Any dtype and small shape, any bits at all: NaN payloads, negative zeros, subnormals."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = torch.Size(shape).numel()
    content = draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    if size == 0:
        return torch.empty(shape, dtype=dtype)
    flat = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    flat = flat % 2 if dtype is torch.bool else flat
    return flat.view(dtype).view(shape)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.text(max_size=6) | st.integers(-5, 5)


def states():
    """Nested states of every kind that a part may be."""
    return st.recursive(
        scalars | tensors(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(st.text(max_size=6), inner, max_size=3)
            | st.dictionaries(st.integers(-5, 5), inner, max_size=3)
        ),
        max_leaves=8,
    )
