"""Write safetensors files in chunks, so that a memory-mapped replay buffer is never copied to memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from edgewise.config import files
from edgewise.runs.durable import write_fully

CHUNK = 1 << 22
"""Bytes that are processed at a time."""

DTYPES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
}
"""The dtypes that a file can hold, with their names in the format."""

TORCH_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}
FORMAT_NAMES = {name: DTYPES[dtype] for name, dtype in TORCH_DTYPES.items()}
"""The names in the format by the names in torch, such as `float32`."""


def write(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write a new safetensors file, flush it to disk and return its SHA-256.

    Tensors may be on any device, be views, or share memory; each is written separately, in chunks.
    """
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for piece in pieces(tensors):
            digest.update(piece)
            write_fully(descriptor, piece)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """Compute the SHA-256 that `write` returns, without writing."""
    digest = hashlib.sha256()
    for piece in pieces(tensors):
        digest.update(piece)
    return digest.hexdigest()


def size_of(tensors: Mapping[str, Tensor]) -> int:
    """Compute the size of the file that `write` creates, in bytes."""
    content = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    return len(next(pieces(tensors))) + content


def digest_of_file(path: Path) -> str:
    """Compute the SHA-256 of a regular file, in chunks."""
    digest = hashlib.sha256()
    descriptor = files.open_to_read(path, largest=files.LARGEST_TENSORS, follow=False)
    try:
        while piece := os.read(descriptor, CHUNK):
            digest.update(piece)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def pieces(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a safetensors file of `tensors`: a header, then each tensor, widest elements first.

    This order aligns every tensor to its element size, as memory-mapping readers expect.
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    yield _header(tensors, order)
    for name in order:
        yield from _bytes(tensors[name].detach())


def as_bytes(tensor: Tensor) -> Tensor:
    """Return the memory of a contiguous tensor as `[bytes]` uint8, without a copy."""
    return tensor.detach().as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def _header(tensors: Mapping[str, Tensor], order: list[str]) -> bytes:
    entries, start = {}, 0
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in DTYPES or tensor.layout is not torch.strided:
            raise TypeError(
                f"{name} is a {tensor.layout} tensor of {tensor.dtype}, which a checkpoint cannot hold"
            )
        stop = start + tensor.numel() * tensor.element_size()
        entries[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, stop],
        }
        start = stop
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64)
    return len(text).to_bytes(8, "little") + text


def _bytes(tensor: Tensor) -> Iterator[memoryview]:
    """Yield the elements of `tensor` in row-major order, at most `CHUNK` bytes at a time."""
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return
    if tensor.is_contiguous() and tensor.device.type == "cpu":
        flat = as_bytes(tensor)
        for start in range(0, size, CHUNK):
            yield flat[start : start + CHUNK].numpy().data
    elif size <= CHUNK:
        yield from _bytes(tensor.cpu().contiguous())
    else:
        rows = max(1, CHUNK * tensor.shape[0] // size)
        for part in tensor.split(rows) if tensor.shape[0] > rows else tensor.unbind(0):
            yield from _bytes(part)
